package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// TenantQuota limits what a tenant may store. 0 allows none.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memories) || !has(self.perUser) || !has(self.perUser.memories) || self.perUser.memories <= self.memories",message="perUser.memories must not exceed memories"
// +kubebuilder:validation:XValidation:rule="!has(self.conversations) || !has(self.perUser) || !has(self.perUser.conversations) || self.perUser.conversations <= self.conversations",message="perUser.conversations must not exceed conversations"
type TenantQuota struct {
	// memories is the maximum number of memories of all users. Default: 10000,
	// unless the platform administrator set another default; the value in effect is
	// status.usage.memories.hard. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Memories *int64 `json:"memories,omitempty"`

	// conversations is the maximum number of active conversations of all users.
	// Conversations over quota are stored but blocked. Default: 500, unless the
	// platform administrator set another default; the value in effect is
	// status.usage.conversations.hard. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Conversations *int64 `json:"conversations,omitempty"`

	// storage is the maximum size of the text of memories, their versions and
	// messages in bytes of UTF-8, at most 8Pi. Default: 10Gi, unless the platform
	// administrator set another default; the value in effect is
	// status.usage.storage.hard. Mutable.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int || isQuantity(self)",message="storage must be a quantity such as 10Gi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 9007199254740992 : !isQuantity(self) || quantity(self).compareTo(quantity('0')) >= 0 && quantity(self).compareTo(quantity('8Pi')) <= 0",message="storage must be from 0 to 8Pi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !isQuantity(self) || quantity(self).compareTo(quantity('0')) < 0 || quantity(self).compareTo(quantity('8Pi')) > 0 || double(int(quantity(self).asApproximateFloat())) == quantity(self).asApproximateFloat()",message="storage must be a whole number of bytes, for example 10Gi or 1536Mi"
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// users is the maximum number of users, including those of applications. Default: 50, unless the platform
	// administrator set another default, or the number of listed users if that is
	// greater; the value in effect is status.usage.users.hard. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Users *int64 `json:"users,omitempty"`

	// requestsPerMinute is the maximum request rate of all users. Default: 600,
	// unless the platform administrator set another default. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerMinute *int64 `json:"requestsPerMinute,omitempty"`

	// pageTokens is the maximum number of tokens of text in one listing of
	// memories. Default: 25000, unless the platform administrator set another
	// default. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	PageTokens *int64 `json:"pageTokens,omitempty"`

	// perUser limits what a single user may store. Default: none, only the
	// tenant's quota applies. Mutable.
	// +optional
	PerUser *UserQuota `json:"perUser,omitempty"`
}

// UserQuota limits what a single user may store. An absent field sets no limit;
// 0 allows none.
type UserQuota struct {
	// memories is the maximum number of memories of a user. It must not exceed the
	// tenant's quota. Default: no limit. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Memories *int64 `json:"memories,omitempty"`

	// conversations is the maximum number of active conversations of a user. It
	// must not exceed the tenant's quota. Default: no limit. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Conversations *int64 `json:"conversations,omitempty"`
}
