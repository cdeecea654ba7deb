package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// Limits returns the quotas by name: the path of the field. A quota that is not set is nil.
func (q TenantQuota) Limits() map[string]*int64 {
	limits := map[string]*int64{
		"memories":          q.Memories,
		"conversations":     q.Conversations,
		"users":             q.Users,
		"requestsPerMinute": q.RequestsPerMinute,
		"pageTokens":        q.PageTokens,
	}
	if q.Storage != nil {
		limits["storage"] = new(q.Storage.Value())
	}
	if q.PerUser != nil {
		limits["perUser.memories"] = q.PerUser.Memories
		limits["perUser.conversations"] = q.PerUser.Conversations
	}
	return limits
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

// TenantUsage is a tenant's usage of each quota.
type TenantUsage struct {
	// memories is the usage of quota.memories.
	Memories CountUsage `json:"memories"`
	// conversations is the usage of quota.conversations; only active
	// conversations count.
	Conversations CountUsage `json:"conversations"`
	// storage is the usage of quota.storage. The used size is rounded down to two
	// significant digits or better.
	Storage StorageUsage `json:"storage"`
	// users is the usage of quota.users: listed users, users of spec.oidc and users of
	// applications.
	Users CountUsage `json:"users"`
	// blocked is the number of conversations over quota. They are stored but not
	// searched.
	Blocked int64 `json:"blocked"`
	// changedAt is the time at which the operator last observed a change of any
	// of these values.
	// +optional
	ChangedAt metav1.Time `json:"changedAt,omitzero"`
}

// Counts returns the usage of each quota that counts objects, by the name of the quota.
func (u *TenantUsage) Counts() map[string]*CountUsage {
	return map[string]*CountUsage{"memories": &u.Memories, "conversations": &u.Conversations, "users": &u.Users}
}

// CountUsage is the usage of a quota that counts objects.
type CountUsage struct {
	// used is the current number.
	Used int64 `json:"used"`
	// hard is the quota.
	Hard int64 `json:"hard"`
}

// StorageUsage is the usage of a quota in bytes.
type StorageUsage struct {
	// used is the current size.
	Used resource.Quantity `json:"used"`
	// hard is the quota.
	Hard resource.Quantity `json:"hard"`
}
