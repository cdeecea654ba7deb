package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxListedUsers is the number of users up to which status.users lists each of
// them. Beyond it, the status holds counts and at most so many failures.
const MaxListedUsers = 50

// TenantStatus is the observed state of a Tenant.
type TenantStatus struct {
	// observedGeneration is the generation of the spec that the operator last
	// reconciled, -1 before the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Synced, IndexReady and TokensReady; OIDCReady if
	// spec.oidc is set; WebhooksReady if spec.webhooks is set; and Reconciling, Stalled, Suspended, QuotaLimited and
	// Paused, which are present only while True.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// id identifies the tenant in the stores: the uid of this Tenant or of the
	// one whose data it adopted.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	ID string `json:"id,omitempty"`

	// placement is the tenant's location in the vector index.
	// +optional
	Placement *TenantPlacement `json:"placement,omitempty"`

	// usage is the tenant's usage and quota.
	// +optional
	Usage *TenantUsage `json:"usage,omitempty"`

	// purge counts the data that a deletion with policy Delete still has to
	// remove. Absent unless a purge is in progress.
	// +optional
	Purge *TenantPurge `json:"purge,omitempty"`

	// rotated is the last value of annotation mnemo.dev/rotate for which every
	// user's token and password were replaced. Values longer than 63 characters
	// are hashed.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rotated string `json:"rotated,omitempty"`

	// oidcUsers is the number of unlisted users who signed in through spec.oidc.
	// +optional
	OIDCUsers int64 `json:"oidcUsers,omitempty"`

	// userCounts counts the users of spec.users.
	// +optional
	UserCounts *UserCounts `json:"userCounts,omitempty"`

	// users lists every user of spec.users if there are at most 50, and otherwise
	// only those whose token is not ready, at most 50 of them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Users []UserStatus `json:"users,omitempty"`

	// applications lists every application of spec.applications.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Applications []ApplicationStatus `json:"applications,omitempty"`

	// webhooks lists every webhook of spec.webhooks.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Webhooks []WebhookStatus `json:"webhooks,omitempty"`
}

// ApplicationStatus describes an application's Secret and key. It never holds the key.
type ApplicationStatus struct {
	// name is the application's name.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// secret is the name of the application's Secret.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Secret string `json:"secret,omitempty"`
	// fingerprint is the first 12 digits of the key's SHA-256.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// tokenGeneration is the tokenGeneration of the spec that the key was issued for.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
	// issued is the number of keys issued to the application so far. All but the last
	// are revoked or about to expire.
	// +optional
	Issued int64 `json:"issued,omitempty"`
	// message says why the key is not ready. Empty if it is.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// TenantPlacement is the location of a tenant's vectors in the index.
type TenantPlacement struct {
	// cell is the Cell that contains the collection. Empty for the default cell of the
	// installation, or without a collection.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cell string `json:"cell,omitempty"`
	// collection is the Milvus collection. Empty if the tenant needs no index yet, or
	// the installation has none: searches score all vectors.
	// +kubebuilder:validation:MaxLength=255
	Collection string `json:"collection"`
	// partition is the partition of the collection, or the tenant's partition key
	// in a shared collection. Empty without a collection.
	// +kubebuilder:validation:MaxLength=255
	Partition string `json:"partition"`
	// isolation is the isolation of the current placement. It differs from
	// spec.isolation until a migration has finished.
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`
	// migratingTo is the collection that the tenant is being migrated to.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	MigratingTo string `json:"migratingTo,omitempty"`
	// migratingToCell is the Cell of that collection. Empty for the default cell of the
	// installation.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MigratingToCell string `json:"migratingToCell,omitempty"`
	// model is the embedding model of the vectors.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Model string `json:"model,omitempty"`
	// nextModel is the embedding model to which the vectors are migrating. Until the
	// migration completes, at most some users are served with it.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	NextModel string `json:"nextModel,omitempty"`
}

// TenantPurge counts the remaining data of a tenant that is being purged.
type TenantPurge struct {
	// memories is the number of remaining memories.
	Memories int64 `json:"memories"`
	// conversations is the number of remaining conversations.
	Conversations int64 `json:"conversations"`
	// partition is true until the partition of the index, which is removed last,
	// is dropped.
	// +optional
	Partition bool `json:"partition,omitempty"`
}

// UserCounts counts the users of spec.users.
type UserCounts struct {
	// total is the number of users.
	Total int64 `json:"total"`
	// ready is the number of users whose Secret holds their current credentials.
	Ready int64 `json:"ready"`
}

// ManagedBy is the issuer of a user's token.
//
// +kubebuilder:validation:Enum=Operator;User
type ManagedBy string

// The issuers of tokens.
const (
	ManagedByOperator ManagedBy = "Operator"
	// ManagedByUser means that the user regenerated the token in the dashboard.
	// The token in the Secret is then empty.
	ManagedByUser ManagedBy = "User"
)

// UserStatus describes a user's Secret and token. It never holds the token.
type UserStatus struct {
	// name is the user's name.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// secret is the name of the user's Secret.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Secret string `json:"secret,omitempty"`
	// fingerprint is the first 12 digits of the token's SHA-256.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// tokenGeneration is the tokenGeneration of the spec that the token was
	// issued for.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
	// issued is the number of tokens issued to the user so far. All but the last
	// are revoked or about to expire.
	// +optional
	Issued int64 `json:"issued,omitempty"`
	// managedBy is the issuer of the token.
	// +optional
	ManagedBy ManagedBy `json:"managedBy,omitempty"`
	// message says why the token is not ready. Empty if it is.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}
