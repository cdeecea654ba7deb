package v1alpha1

// The condition types of a Tenant. Each condition carries the generation it was
// observed at, and a message that says what to do where something has to be done.
const (
	// Ready is True when Synced, IndexReady and TokensReady are. A suspended
	// Tenant can be Ready.
	Ready = "Ready"
	// Synced is True when tenant, users and quota are stored as specified.
	Synced = "Synced"
	// IndexReady is True when the tenant's partition of the vector index exists
	// and is loaded, or when the tenant needs no index.
	IndexReady = "IndexReady"
	// TokensReady is True when the Secret of each user and application holds its current
	// credentials.
	TokensReady = "TokensReady"
	// OIDCReady is True when every domain of spec.oidc belongs to this Tenant.
	// Absent without spec.oidc. Ready does not depend on it.
	OIDCReady = "OIDCReady"
	// WebhooksReady is True when every webhook of spec.webhooks is stored with the secret
	// in its Secret, a connection to its address was made, and its events are delivered.
	// Absent without spec.webhooks. Ready does not depend on it.
	WebhooksReady = "WebhooksReady"
)

// The condition types that are present only while they are True.
const (
	// Reconciling means that the operator is still working toward the desired
	// state, or is retrying after an error (kstatus: InProgress).
	Reconciling = "Reconciling"
	// Stalled means that the operator cannot make progress until somebody acts on
	// the message (kstatus: Failed).
	Stalled = "Stalled"
	// Suspended means that spec.suspended refuses all data requests.
	Suspended = "Suspended"
	// QuotaLimited means that spec.quota exceeds the platform's maximum, or
	// spec.quota.perUser the tenant's quota; the lower value is used instead.
	QuotaLimited = "QuotaLimited"
	// GenerationLowered means that a tokenGeneration or secretGeneration of the spec is
	// below the one of the current credentials, which stay valid.
	GenerationLowered = "GenerationLowered"
	// Paused means that annotation mnemo.dev/paused stops reconciliation.
	Paused = "Paused"
)

// The reasons of conditions that report a normal state.
const (
	ReasonReady        = "Ready"
	ReasonApplied      = "Applied"      // Synced, OIDCReady, WebhooksReady
	ReasonAssigned     = "Assigned"     // IndexReady
	ReasonUnindexed    = "Unindexed"    // IndexReady: the tenant needs no index yet, or the installation has none; searches score all vectors
	ReasonMigrating    = "Migrating"    // IndexReady: vectors are being copied to another collection; the tenant stays usable
	ReasonReembedding  = "Reembedding"  // IndexReady: vectors are being computed with another embedding model; the tenant stays usable
	ReasonRebuilding   = "Rebuilding"   // IndexReady: lost vectors are being rewritten; the tenant stays usable
	ReasonIssued       = "Issued"       // TokensReady
	ReasonSuspended    = "Suspended"    // Suspended: spec.suspended is true
	ReasonAboveMaximum = "AboveMaximum" // QuotaLimited: a value of spec.quota exceeds its maximum
	ReasonBelowCurrent = "BelowCurrent" // GenerationLowered: the credentials have a higher generation
	ReasonPaused       = "Paused"       // Paused: the annotation is "true"
)

// The reasons of condition Reconciling, named as Flux names them.
const (
	ReasonProgressing          = "Progressing"
	ReasonProgressingWithRetry = "ProgressingWithRetry"
)

// The reasons of conditions that are False.
const (
	ReasonLoading           = "Loading"           // IndexReady: Milvus is loading the partition
	ReasonUnavailable       = "Unavailable"       // a store cannot be reached; retried
	ReasonWaiting           = "Waiting"           // an earlier step must succeed first
	ReasonFailed            = "Failed"            // any other error; retried
	ReasonAdoptionRequired  = "AdoptionRequired"  // Synced: the name has retained data, and spec.adoption.policy is Never
	ReasonAdoptionRefused   = "AdoptionRefused"   // Synced: the retained data of the name belongs to another namespace
	ReasonCellNotFound      = "CellNotFound"      // IndexReady: spec.placement names no cell or region; the tenant stays where it is
	ReasonCellFull          = "CellFull"          // IndexReady: no cell that spec.placement requests accepts a tenant; the tenant stays where it is
	ReasonCellsDisabled     = "CellsDisabled"     // IndexReady: the platform administrator has not enabled cells
	ReasonNameInUse         = "NameInUse"         // Synced: the name belongs to a Tenant that is not finalized yet
	ReasonNamePurging       = "NamePurging"       // Synced: the data of the deleted Tenant of the name is being purged
	ReasonSecretConflict    = "SecretConflict"    // TokensReady, WebhooksReady: a Secret of the name is not owned by this Tenant
	ReasonTooManyUsers      = "TooManyUsers"      // TokensReady: spec.users lists more users than the platform's maximum
	ReasonDomainConflict    = "DomainConflict"    // OIDCReady: a domain belongs to another Tenant
	ReasonDomainNotAssigned = "DomainNotAssigned" // OIDCReady: the platform administrator has not assigned a domain
	ReasonNoDomains         = "NoDomains"         // OIDCReady: spec.oidc.emailDomains is empty
	ReasonNotConnected      = "NotConnected"      // WebhooksReady: no connection to the address of a webhook was made yet
	ReasonDeliveryFailing   = "DeliveryFailing"   // WebhooksReady: an endpoint does not accept events, or is disabled
	ReasonWebhooksDisabled  = "WebhooksDisabled"  // WebhooksReady: the platform administrator has not enabled webhooks
	ReasonDeletionPrevented = "DeletionPrevented" // Ready: spec.preventDeletion blocks the deletion
	ReasonPurging           = "Purging"           // Ready: the data is being purged
)

// Finalizer blocks the removal of a Tenant until its data is retained or purged.
const Finalizer = "mnemo.dev/tenant"

// AnnotationOIDCDomains lists, on a Namespace, the email domains that the platform
// administrator assigns to its Tenants, separated by commas. "*" assigns every domain
// except those of public mail providers.
const AnnotationOIDCDomains = "mnemo.dev/oidc-domains"

// Annotations that users set on a Tenant.
const (
	// AnnotationPaused stops reconciliation, including deletion, while it is "true".
	AnnotationPaused = "mnemo.dev/paused"
	// AnnotationRotate replaces the credentials of every user and application, and the
	// signing secrets of webhooks, once for each new value, for example a date.
	// status.rotated holds the last value that was completed.
	AnnotationRotate = "mnemo.dev/rotate"
)

// Labels and annotations of the Secrets that the operator writes.
const (
	LabelTenant = "mnemo.dev/tenant" // the Tenant's name
	LabelUser   = "mnemo.dev/user"
	// LabelApplication replaces LabelUser on the Secret of an application.
	LabelApplication = "mnemo.dev/application"
	// LabelWebhook replaces LabelUser on the Secret of a webhook.
	LabelWebhook = "mnemo.dev/webhook"
	// LabelManagedBy selects the Secrets that the operator watches.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedByValue = "mnemo"

	// AnnotationTokenGeneration is the spec's tokenGeneration that the token was
	// issued for.
	AnnotationTokenGeneration = "mnemo.dev/token-generation" //nolint:gosec // a name, no credential
	// AnnotationSecretGeneration is the spec's secretGeneration that the signing secret of
	// a webhook was generated for.
	AnnotationSecretGeneration = "mnemo.dev/secret-generation" //nolint:gosec // a name, no credential
	// AnnotationFingerprint identifies the token or signing secret, and AnnotationPasswordFingerprint
	// the password, by the first digits of the SHA-256.
	AnnotationFingerprint         = "mnemo.dev/fingerprint"
	AnnotationPasswordFingerprint = "mnemo.dev/password-fingerprint" //nolint:gosec // a name, no credential
	// AnnotationRotated is the value of AnnotationRotate that the token or signing secret
	// was last replaced for.
	AnnotationRotated = "mnemo.dev/rotated"
)

// The keys of a Secret. That of an application has no password and no name to sign in with,
// and that of a webhook only the signing secret.
const (
	SecretToken         = "token"
	SecretPassword      = "password"
	SecretSignInName    = "signInName" // <tenant>/<user>
	SecretURL           = "url"
	SecretMCPURL        = "mcpUrl"
	SecretSigningSecret = "signingSecret"
)
