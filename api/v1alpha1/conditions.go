package v1alpha1

// The conditions of a Tenant. Each carries the generation it was seen at and a
// message that says what to do next where there is something to do.
const (
	// Ready is True when all the others are and the tenant is not suspended.
	Ready = "Ready"
	// TokensReady is True when each user's Secret holds a valid token.
	TokensReady = "TokensReady"
	// QuotaReady is True when tenant, users and quota are stored as the spec says.
	QuotaReady = "QuotaReady"
	// Paused is True while annotation mnemo.dev/paused stops reconciling, and
	// not there otherwise.
	Paused = "Paused"
	// OIDCReady is True when spec.oidc has domains and each is this tenant's, and
	// not there without spec.oidc.
	OIDCReady = "OIDCReady"
	// PartitionReady is True when the tenant's partition is there.
	PartitionReady = "PartitionReady"
)

// The reasons of conditions that are True.
const (
	ReasonReady   = "Ready"
	ReasonIssued  = "Issued"  // TokensReady
	ReasonApplied = "Applied" // QuotaReady
	ReasonPlaced  = "Placed"  // PartitionReady
	ReasonPaused  = "Paused"  // Paused
	// PartitionReady while what is there is being copied to another place, or
	// written anew after it was lost. The tenant can be used meanwhile.
	ReasonMoving     = "Moving"
	ReasonRebuilding = "Rebuilding"
)

// The reasons of conditions that are not True.
const (
	ReasonSuspended         = "Suspended"         // Ready: the spec says so
	ReasonUnavailable       = "Unavailable"       // a store is away; tried again
	ReasonClaimRequired     = "ClaimRequired"     // the name belongs to a retained tenant
	ReasonClaimRefused      = "ClaimRefused"      // spec.claim names no tenant this one may adopt
	ReasonSecretNameTaken   = "SecretNameTaken"   // a Secret of that name is not this Tenant's
	ReasonDomainTaken       = "DomainTaken"       // OIDCReady: another Tenant named a domain first
	ReasonNoDomains         = "NoDomains"         // OIDCReady: spec.oidc names none
	ReasonLoading           = "Loading"           // PartitionReady: Milvus loads it, which takes seconds, of much data minutes
	ReasonWaiting           = "Waiting"           // an earlier step has to succeed first
	ReasonFailed            = "Failed"            // anything else; the message says what
	ReasonDeletionPrevented = "DeletionPrevented" // Ready: deleted, held by spec.preventDeletion
	ReasonPurging           = "Purging"           // Ready: deleted, data is being purged
)

// The deletion policies and isolations.
const (
	Retain DeletionPolicy = "Retain"
	Delete DeletionPolicy = "Delete"

	Partition Isolation = "Partition"
	Shared    Isolation = "Shared"
)

// Finalizer keeps a Tenant until its stores have let go of it.
const Finalizer = "mnemo.dev/tenant"

// Annotations a person puts on a Tenant.
const (
	// AnnotationPaused stops reconciling, deletion included, while it is "true".
	AnnotationPaused = "mnemo.dev/paused"
	// AnnotationRotate replaces every user's token and password once for each
	// value it is given, for example the date. status.rotated says which was
	// done last.
	AnnotationRotate = "mnemo.dev/rotate"
)

// Labels and annotations of the Secrets the operator writes.
const (
	LabelTenant = "mnemo.dev/tenant" // the Tenant's name
	LabelUser   = "mnemo.dev/user"
	// LabelManagedBy selects the Secrets the operator watches.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedByValue = "mnemo"

	// AnnotationTokenGeneration is the spec's tokenGeneration the token is for.
	AnnotationTokenGeneration = "mnemo.dev/token-generation"
	// AnnotationFingerprint names the token and AnnotationPasswordFingerprint
	// the password by the start of their SHA-256.
	AnnotationFingerprint         = "mnemo.dev/fingerprint"
	AnnotationPasswordFingerprint = "mnemo.dev/password-fingerprint"
	// AnnotationRotated is the Tenant's AnnotationRotate that the token was last
	// replaced for.
	AnnotationRotated = "mnemo.dev/rotated"
)

// The keys of a user's Secret.
const (
	SecretToken    = "token"
	SecretPassword = "password"
	SecretURL      = "url"
)
