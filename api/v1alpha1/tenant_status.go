package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TenantStatus is what the operator saw and did.
type TenantStatus struct {
	// observedGeneration is the generation of the spec the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, TokensReady, QuotaReady and PartitionReady, OIDCReady
	// where spec.oidc is set, and Paused while the Tenant is.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// id is what the tenant is known by in the stores: its uid, or the one it claimed.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	ID string `json:"id,omitempty"`

	// placement is where the tenant's vectors are.
	// +optional
	Placement *TenantPlacement `json:"placement,omitempty"`

	// usage is what the tenant holds of what it may hold.
	// +optional
	Usage *TenantUsage `json:"usage,omitempty"`

	// purge is what a deletion with policy Delete has still to remove; absent
	// unless one is under way.
	// +optional
	Purge *TenantPurge `json:"purge,omitempty"`

	// rotated is the value of annotation mnemo.dev/rotate that every user's token
	// was last replaced for; of a value longer than 63 characters, a hash.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rotated string `json:"rotated,omitempty"`

	// oidcUsers counts the users who are not listed and signed in by spec.oidc.
	// +optional
	OIDCUsers int64 `json:"oidcUsers,omitempty"`

	// users are the listed users with their Secrets.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Users []UserStatus `json:"users,omitempty"`
}

// TenantPlacement is where in the index a tenant's vectors are.
type TenantPlacement struct {
	// collection is the Milvus collection.
	// +kubebuilder:validation:MaxLength=255
	Collection string `json:"collection"`
	// partition is the partition in it, or the tenant's key where the
	// collection is shared.
	// +kubebuilder:validation:MaxLength=255
	Partition string `json:"partition"`
	// isolation is the kind of place: another one than the spec's until the
	// tenant was moved.
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`
	// movingTo is the collection the tenant is being moved to.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	MovingTo string `json:"movingTo,omitempty"`
}

// TenantPurge is what is left of a tenant that is being purged.
type TenantPurge struct {
	// memories that are left.
	Memories int64 `json:"memories"`
	// conversations that are left.
	Conversations int64 `json:"conversations"`
	// partition says that the place in the index is left: it goes last.
	// +optional
	Partition bool `json:"partition,omitempty"`
}

// TenantUsage is what a tenant holds, each as used/hard.
type TenantUsage struct {
	// memories, for example 12/10000.
	// +kubebuilder:validation:MaxLength=64
	Memories string `json:"memories"`
	// conversations that are active, for example 3/500.
	// +kubebuilder:validation:MaxLength=64
	Conversations string `json:"conversations"`
	// storage of text, for example 13.4Ki/10Gi; what is used is rounded down.
	// +kubebuilder:validation:MaxLength=64
	Storage string `json:"storage"`
	// users, for example 2/50.
	// +kubebuilder:validation:MaxLength=64
	Users string `json:"users"`
	// blocked is how many conversations are kept beyond the quota.
	Blocked int64 `json:"blocked"`
	// changedAt is when any of these was last seen to differ. It stays while they do.
	// +optional
	ChangedAt metav1.Time `json:"changedAt,omitzero"`
}

// ManagedBy says who issued a user's token.
//
// +kubebuilder:validation:Enum=operator;user
type ManagedBy string

// The issuers of tokens.
const (
	ManagedByOperator ManagedBy = "operator"
	ManagedByUser     ManagedBy = "user" // regenerated in the dashboard; the Secret's token is empty
)

// UserStatus is a user's Secret and token, which it does not hold.
type UserStatus struct {
	// name of the user.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// secret is the name of the user's Secret.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Secret string `json:"secret,omitempty"`
	// fingerprint is the start of the token's SHA-256.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// tokenGeneration is the one of the spec that the token was issued for.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
	// issued counts the user's tokens; those below it are revoked or about to expire.
	// +optional
	Issued int64 `json:"issued,omitempty"`
	// managedBy says who issued the token.
	// +optional
	ManagedBy ManagedBy `json:"managedBy,omitempty"`
}
