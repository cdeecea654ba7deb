package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a customer of the platform: its users, their quotas, and what
// happens to the data when the Tenant is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tnt,categories=mnemo
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="Suspended",type=string,JSONPath=`.status.conditions[?(@.type=="Suspended")].status`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.usage.users.used`
// +kubebuilder:printcolumn:name="Memories",type=integer,JSONPath=`.status.usage.memories.used`
// +kubebuilder:printcolumn:name="Conversations",type=integer,JSONPath=`.status.usage.conversations.used`
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.usage.blocked`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.status.usage.storage.used`
// +kubebuilder:printcolumn:name="MaxUsers",type=integer,JSONPath=`.status.usage.users.hard`,priority=1
// +kubebuilder:printcolumn:name="MaxMemories",type=integer,JSONPath=`.status.usage.memories.hard`,priority=1
// +kubebuilder:printcolumn:name="MaxConversations",type=integer,JSONPath=`.status.usage.conversations.hard`,priority=1
// +kubebuilder:printcolumn:name="MaxStorage",type=string,JSONPath=`.status.usage.storage.hard`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters: it is part of Secret names and a label value"
type Tenant struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +kubebuilder:default={}
	// +optional
	Spec TenantSpec `json:"spec,omitempty"`
	// status is the observed state. The operator writes it.
	// +kubebuilder:default={"observedGeneration":-1}
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

// DeletionPolicy decides what deleting a Tenant does to its data.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	Retain DeletionPolicy = "Retain"
	Delete DeletionPolicy = "Delete"
)

// Isolation decides how a tenant's vectors are separated from those of others.
//
// +kubebuilder:validation:Enum=Partition;Shared
type Isolation string

// The isolations.
const (
	Partition Isolation = "Partition"
	Shared    Isolation = "Shared"
)

// TenantSpec is the desired state of a Tenant.
//
// +kubebuilder:validation:XValidation:rule="!has(self.users) || !has(self.quota) || !has(self.quota.users) || size(self.users) <= self.quota.users",message="users must not list more users than quota.users allows"
type TenantSpec struct {
	// displayName is the name shown to users. Default: metadata.name. Mutable.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="!self.matches(r'[\\p{Cc}\\p{Zl}\\p{Zp}]')",message="displayName must not contain control characters or line breaks"
	// +kubebuilder:validation:XValidation:rule="!self.matches(r'[\\x{61C}\\x{200E}\\x{200F}\\x{202A}-\\x{202E}\\x{2066}-\\x{2069}]')",message="displayName must not contain characters that change the direction of text"
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches(r'[^\\s\\p{Cc}\\p{Cf}\\p{Z}\\x{34F}\\x{115F}\\x{1160}\\x{17B4}\\x{17B5}\\x{180B}-\\x{180F}\\x{2065}\\x{2800}\\x{3164}\\x{FE00}-\\x{FE0F}\\x{FFA0}\\x{FFF0}-\\x{FFF8}\\x{E0000}-\\x{E0FFF}]')",message="displayName must not be blank"
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// suspended refuses every data request with 403. Nothing is deleted, and
	// tokens work again once it is false. Condition Suspended reports it; Ready
	// does not depend on it. Default: false. Mutable.
	// +kubebuilder:default=false
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// deletionPolicy decides what deleting the Tenant does to its data. Retain
	// keeps the data until a new Tenant of the same name adopts it. Delete
	// purges rows, vectors and partition. It also applies to users who are removed
	// from the list. Default: Retain. Mutable until the data is purged.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// isolation decides where vectors are stored once the tenant needs an index.
	// Partition gives the tenant a Milvus partition. Shared stores them in a
	// collection that thousands of small tenants share, separated by a partition
	// key. Default: Partition. Mutable: the tenant is migrated while it stays usable,
	// see status.placement.
	// +kubebuilder:default=Partition
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`

	// placement is the cell that contains the vectors once an index is used. Default:
	// the default cell of the installation. Mutable: the tenant is migrated while it
	// stays usable, see status.placement.
	// +optional
	Placement *TenantPlacementRequest `json:"placement,omitempty"`

	// preventDeletion blocks deletion of the Tenant, and of its namespace, until it
	// is false. Data and access stay; only deleting the namespace removes the
	// users' Secrets at once. Default: false. Mutable.
	// +kubebuilder:default=false
	// +optional
	PreventDeletion bool `json:"preventDeletion,omitempty"`

	// tokenOverlap is how long an old token stays valid after tokenGeneration was
	// raised or annotation mnemo.dev/rotate was set, for example 10m, so that
	// clients can switch to the new one without errors. During the overlap, events
	// are also signed with the webhook's previous secret. At most 720h. Lowering it
	// also shortens overlaps that are in progress. Deleting a user's Secret
	// revokes the token without overlap. Default: 0s. Mutable.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="tokenOverlap must be a duration such as 30m or 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('720h')",message="tokenOverlap must be at most 720h"
	// +kubebuilder:default="0s"
	// +optional
	TokenOverlap metav1.Duration `json:"tokenOverlap,omitempty"`

	// users are the tenant's users. Each gets Secret <tenant>-<user>-access with
	// keys token (for the API), url, mcpUrl (of the MCP server), and signInName and
	// password (for the dashboard). token and password are empty once the user has
	// replaced them. Removing a user revokes access at once; with deletionPolicy Retain
	// the data is kept and is available again if the same name is listed again, with
	// Delete it is purged. At most 1000. Default: none. Mutable.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	// +optional
	Users []TenantUser `json:"users,omitempty"`

	// applications are the backends that act for users of their own with an API key.
	// Each gets Secret <tenant>-<application>-key with keys token, url and mcpUrl. The users are
	// created by the first write for them, count toward quota.users and are not Kubernetes
	// objects. All applications of the tenant share them; no application can access
	// the data of spec.users or of users of spec.oidc. Removing an application revokes
	// its key at once and keeps the data. At most 20. Default: none. Mutable.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Applications []TenantApplication `json:"applications,omitempty"`

	// webhooks are the endpoints that receive the changes of the tenant as signed events.
	// Each gets Secret <tenant>-<webhook>-webhook with key signingSecret. Removing a webhook
	// ends the delivery and deletes the Secret. Events are delivered only if the platform
	// administrator has enabled webhooks. Condition WebhooksReady reports failures; Ready
	// does not depend on it. At most 20. Default: none. Mutable.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Webhooks []TenantWebhook `json:"webhooks,omitempty"`

	// quota limits what the tenant may store. The platform administrator sets the
	// maximum, which applies if the spec asks for more (condition QuotaLimited).
	// Default: see each field; the platform administrator may set other defaults.
	// 0 allows none. Mutable: lowering a quota blocks the oldest conversations over
	// it and deletes nothing.
	// +optional
	Quota TenantQuota `json:"quota,omitempty"`

	// oidc lets users sign in to the dashboard without being listed. Default:
	// absent, only listed users can sign in. Mutable.
	// +optional
	OIDC *TenantOIDC `json:"oidc,omitempty"`

	// adoption decides what happens to the data of a deleted Tenant of the same
	// name. Default: policy SameName. Mutable until the data is adopted; ignored
	// afterwards.
	// +kubebuilder:default={}
	// +optional
	Adoption TenantAdoption `json:"adoption,omitempty"`
}

// TenantPlacementRequest requests a Cell.
//
// +kubebuilder:validation:XValidation:rule="has(self.cell) != has(self.region)",message="set either cell or region"
type TenantPlacementRequest struct {
	// cell is the name of a Cell. Default: none. Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cell string `json:"cell,omitempty"`

	// region is the spec.region of Cells. The one with the largest free share of its
	// capacity is chosen; the tenant stays there until the cell is cordoned or leaves the
	// region. Default: none. Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Region string `json:"region,omitempty"`
}

// AdoptionPolicy decides whether a Tenant adopts retained data.
//
// +kubebuilder:validation:Enum=Never;SameName
type AdoptionPolicy string

// The adoption policies.
const (
	AdoptNever    AdoptionPolicy = "Never"
	AdoptSameName AdoptionPolicy = "SameName"
)

// TenantAdoption decides whether a Tenant adopts the data of a deleted one.
type TenantAdoption struct {
	// policy is SameName to adopt the retained data of a deleted Tenant of the same
	// name in the same namespace, and to issue new tokens for it. A namespace that
	// was deleted and created again is another namespace: its data is adopted only
	// after the platform administrator has reassigned it. Never makes the Tenant
	// wait while there is such data; choose it if names are reused for other
	// customers. Data of a Tenant with deletionPolicy Delete is purged and
	// never adopted. Default: SameName. Mutable.
	// +kubebuilder:default=SameName
	// +optional
	Policy AdoptionPolicy `json:"policy,omitempty"`
}

// TenantUser is a user of a tenant.
type TenantUser struct {
	// name is unique within the tenant: lower-case letters and digits, separated
	// by single dots. Dashes are not allowed, so that user c of tenant a-b and user
	// b-c of tenant a cannot share a Secret. Required, no default. Immutable:
	// another name is another user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+([.][a-z0-9]+)*$')",message="a user name must consist of lower-case letters and digits, separated by single dots; dashes are not allowed"
	// +required
	Name string `json:"name"`

	// email is the user's email address. Default: none. Mutable.
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches(r'^[^\\p{C}\\p{Z}\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}\"(),.:;<>@\\[-\\]]+)*@[^\\p{C}\\p{Z}\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}\"(),.:;<>@\\[-\\]]+)*$')",message="email must be an email address such as alice@acme.test"
	// +optional
	Email string `json:"email,omitempty"`

	// role is Administrator for a user who sees the members of the tenant, their usage
	// and the keys of applications in the dashboard, and exports the audit log. No role
	// gives access to the data of other users. Default: Member. Mutable.
	// +kubebuilder:default=Member
	// +optional
	Role UserRole `json:"role,omitempty"`

	// tokenGeneration replaces the token and password when it is raised. A lower value
	// changes nothing, and condition GenerationLowered reports it. Default: 1. Mutable.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:default=1
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// UserRole is what a user may do besides using their own data.
//
// +kubebuilder:validation:Enum=Member;Administrator
type UserRole string

// The roles.
const (
	Member        UserRole = "Member"
	Administrator UserRole = "Administrator"
)

// ApplicationScope is what an application may do. Unlike other enumerations it is in lower
// case: it is the scope that the API lists for tokens and that documents name.
//
// +kubebuilder:validation:Enum=read;write;admin
type ApplicationScope string

// TenantApplication is a backend with an API key of its own.
type TenantApplication struct {
	// name is unique among the tenant's applications: lower-case letters and digits,
	// separated by single dots. Dashes are not allowed, as in user names. Required, no
	// default. Immutable: another name is another application.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+([.][a-z0-9]+)*$')",message="an application name must consist of lower-case letters and digits, separated by single dots; dashes are not allowed"
	// +required
	Name string `json:"name"`

	// scopes are what the key may do: read reads, searches and exports data of the
	// applications' users, write creates, changes and deletes it, admin lists and erases
	// the users themselves. None includes another. Required, no default. Mutable.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +required
	Scopes []ApplicationScope `json:"scopes"`

	// allowedOrigins are the origins of web pages whose scripts may call the API with
	// this key, such as https://app.acme.test. A page can read the key that its script
	// uses. Default: none; browsers block cross-origin requests. Mutable.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=262
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^https?://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[1-9][0-9]{0,4})?$')",message="an origin is a scheme and a host in lower case without a path, such as https://app.acme.test"
	// +listType=set
	// +optional
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`

	// requestsPerMinute is the maximum request rate of the application, in addition to
	// quota.requestsPerMinute. Default: no limit of its own. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerMinute *int64 `json:"requestsPerMinute,omitempty"`

	// tokenGeneration replaces the key when it is raised. A lower value changes nothing,
	// and condition GenerationLowered reports it. Default: 1. Mutable.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:default=1
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// TenantOIDC lets users sign in through an identity provider.
type TenantOIDC struct {
	// issuer is the https URL of the identity provider. Required, no default.
	// Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^[:space:]]+$')",message="issuer must be the https:// URL of the identity provider"
	// +required
	Issuer string `json:"issuer"`

	// emailDomains are the domains whose verified addresses belong to this tenant.
	// The platform administrator must have assigned them to the namespace with
	// annotation mnemo.dev/oidc-domains. Default: none, nobody can sign in. Mutable.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",message="emailDomains must be lower-case domain names such as acme.test"
	// +listType=set
	// +optional
	EmailDomains []string `json:"emailDomains,omitempty"`

	// removedUsers are the email addresses of users who no longer have access, in
	// lower case. Their sessions, tokens and connected apps end immediately, and
	// their sign-ins are rejected. deletionPolicy determines what happens to their
	// data. Default:
	// none. Mutable.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=320
	// +kubebuilder:validation:items:XValidation:rule="self.matches(r'^[^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+)*@[^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+)*$')",message="removedUsers must be email addresses in lower case such as ann@acme.test"
	// +listType=set
	// +optional
	RemovedUsers []string `json:"removedUsers,omitempty"`

	// administrators are the email addresses, in lower case, of users of the identity
	// provider with the role Administrator; see users. Default: none. Mutable.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=320
	// +kubebuilder:validation:items:XValidation:rule="self.matches(r'^[^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+)*@[^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+([.][^\\p{C}\\p{Z}A-Z\"(),.:;<>@\\[-\\]]+)*$')",message="administrators must be email addresses in lower case such as ann@acme.test"
	// +listType=set
	// +optional
	Administrators []string `json:"administrators,omitempty"`
}
