package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a customer of the host: its users, what they may hold, and what
// becomes of it all when the Tenant is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tnt,categories=mnemo
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Users",type=string,JSONPath=`.status.usage.users`
// +kubebuilder:printcolumn:name="Memories",type=string,JSONPath=`.status.usage.memories`
// +kubebuilder:printcolumn:name="Conversations",type=string,JSONPath=`.status.usage.conversations`
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.usage.blocked`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.status.usage.storage`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name may have at most 63 characters: it is part of Secret names and a label"
type Tenant struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +kubebuilder:default={}
	// +optional
	Spec TenantSpec `json:"spec,omitempty"`
	// status is what is; the operator writes it.
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantList is a list of Tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}

// DeletionPolicy says what deleting the Tenant does to its data.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// Isolation says how a tenant's vectors are kept apart from others'.
//
// +kubebuilder:validation:Enum=Partition;Shared
type Isolation string

// TenantSpec is what is wanted of a Tenant.
//
// +kubebuilder:validation:XValidation:rule="!has(self.users) || !has(self.quota) || !has(self.quota.users) || size(self.users) <= self.quota.users",message="users lists more than quota.users allows: raise quota.users or list fewer"
type TenantSpec struct {
	// displayName is what people see. Default: empty, the name is shown. Mutable.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// suspended answers every data request with 403 and deletes nothing; tokens
	// work again afterwards. The Tenant is not Ready meanwhile. Default: false.
	// Mutable.
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// deletionPolicy says what deleting the Tenant does to its data: Retain
	// keeps it under the Tenant's uid until a new Tenant claims it, Delete
	// purges rows, vectors and partition. Default: Retain. Mutable until the
	// data is purged.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// isolation says where vectors are kept: Partition is a Milvus partition of
	// the tenant's own; Shared is a collection that thousands of small tenants
	// share, kept apart by a key. Default: Partition. Mutable: the tenant is
	// moved while it is used, see status.placement.
	// +kubebuilder:default=Partition
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`

	// preventDeletion holds a deletion, that of the namespace included, until it
	// is false again: nothing is taken away before, but for the users' Secrets
	// when the namespace is deleted, which takes them at once. Default: false.
	// Mutable.
	// +optional
	PreventDeletion bool `json:"preventDeletion,omitempty"`

	// tokenOverlap is how long an old token lives on beside the new one after
	// tokenGeneration was raised or annotation mnemo.dev/rotate was set, for
	// example 10m, so that clients can take up the new one without an error; at
	// most 720h. Deleting a user's Secret ends its token at once, and so does
	// lowering this for those that live longer. Default: 0s. Mutable.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="tokenOverlap must be a duration such as 30m or 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('720h')",message="tokenOverlap may be at most 720h"
	// +kubebuilder:default="0s"
	// +optional
	TokenOverlap metav1.Duration `json:"tokenOverlap,omitempty"`

	// users are the people who get a token each, in Secret <tenant>-<user>-access
	// with keys token, password and url. Removing one ends the access at once;
	// with deletionPolicy Retain the data is kept and is there again when the
	// name is listed again, with Delete it is purged. At most 1000. Default:
	// none. Mutable.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	// +optional
	Users []TenantUser `json:"users,omitempty"`

	// quota is what the tenant may hold. Default: absent fields take the operator's
	// default; 0 means none. Mutable: lowering it blocks the oldest
	// conversations beyond it and deletes nothing.
	// +optional
	Quota TenantQuota `json:"quota,omitempty"`

	// oidc lets people sign in to the dashboard who are not listed. Default: nobody.
	// Default: none. Mutable.
	// +optional
	OIDC *TenantOIDC `json:"oidc,omitempty"`

	// claim is the uid of a deleted Tenant of this namespace and name whose
	// retained data this one adopts, with new tokens; also of one of another
	// cluster that was given up with `mnemo tenants retire`. Default: none.
	// Mutable until it is granted, without effect afterwards.
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="claim takes the uid of a deleted Tenant, as mnemo tenants --retained lists it"
	// +optional
	Claim string `json:"claim,omitempty"`
}

// TenantUser is a person who gets a token.
type TenantUser struct {
	// name is unique within the tenant: lower-case letters, digits and dots
	// between them. No dashes, so that tenant a-b with user c and tenant a
	// with user b-c cannot share a Secret. Immutable: another name is another user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+([.][a-z0-9]+)*$')",message="a user's name takes lower-case letters, digits and single dots between them, and no dash"
	// +required
	Name string `json:"name"`

	// email is where the person can be reached. Default: none. Mutable.
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[^@[:space:]]+@[^@[:space:]]+$')",message="email must be an address such as alice@acme.test"
	// +optional
	Email string `json:"email,omitempty"`

	// tokenGeneration is raised to replace token and password. Default: 1.
	// Mutable: may only grow.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="tokenGeneration may not decrease"
	// +kubebuilder:default=1
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// TenantQuota is what a tenant may hold. An absent field takes the operator's
// default; 0 means none.
type TenantQuota struct {
	// memories is how many memories the tenant may hold. Default: the operator's, 10000. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Memories *int64 `json:"memories,omitempty"`

	// conversations is how many conversations may be active; more are kept
	// blocked. Default: the operator's, 500. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Conversations *int64 `json:"conversations,omitempty"`

	// storage is how much UTF-8 text memories, their versions and messages may
	// have together, at most 8Pi. Default: the operator's, 10Gi. Mutable.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int || isQuantity(self)",message="storage must be a quantity such as 10Gi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 9007199254740992 : !isQuantity(self) || quantity(self).compareTo(quantity('0')) >= 0 && quantity(self).compareTo(quantity('8Pi')) <= 0",message="storage must be from 0 to 8Pi"
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// users is how many users the tenant may have. Default: the operator's, 50,
	// or as many as are listed where that is more. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Users *int64 `json:"users,omitempty"`

	// requestsPerMinute is how many requests all users together may make.
	// Default: the operator's, 600. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerMinute *int64 `json:"requestsPerMinute,omitempty"`

	// listTokens is how many tokens of text one listing of memories may hold.
	// Default: the operator's, 25000. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	ListTokens *int64 `json:"listTokens,omitempty"`

	// perUser bounds what a single user may hold. Default: no bound but the
	// tenant's. Mutable.
	// +optional
	PerUser *UserQuota `json:"perUser,omitempty"`
}

// UserQuota is what a single user may hold. An absent field sets no bound but
// the tenant's; 0 means none.
type UserQuota struct {
	// memories is how many memories a user may hold. Default: no bound. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Memories *int64 `json:"memories,omitempty"`

	// conversations is how many active conversations a user may have. Default: no bound. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Conversations *int64 `json:"conversations,omitempty"`
}

// TenantOIDC lets people sign in with an identity provider.
type TenantOIDC struct {
	// issuer is the provider's URL. Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^[:space:]]+$')",message="issuer must be the https:// URL of the identity provider"
	// +required
	Issuer string `json:"issuer"`

	// emailDomains are those whose verified addresses belong to this tenant.
	// Default: none. Mutable.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",message="emailDomains takes domains in lower case such as acme.test"
	// +listType=set
	// +optional
	EmailDomains []string `json:"emailDomains,omitempty"`
}
