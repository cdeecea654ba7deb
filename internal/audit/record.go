package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Verb is an action on a kind of object: "<kind>.<action>".
type Verb string

// The verbs, with their objects.
const (
	MemoryCreate         Verb = "memory.create"         // ids
	MemoryUpdate         Verb = "memory.update"         // ids: text, bucket or attributes
	MemoryDelete         Verb = "memory.delete"         // ids
	MemoryUndelete       Verb = "memory.undelete"       // ids: a deletion was undone
	MemoryMerge          Verb = "memory.merge"          // ids of the memories that were merged into another one
	MemoryUnmerge        Verb = "memory.unmerge"        // ids: a merge was undone
	MemoryRestore        Verb = "memory.restore"        // ids, from an export of Mnemo
	MemoryExtract        Verb = "memory.extract"        // id of the extraction: messages were received to extract facts from them
	BucketCreate         Verb = "bucket.create"         // ids
	BucketUpdate         Verb = "bucket.update"         // id
	BucketDelete         Verb = "bucket.delete"         // id
	ConversationStore    Verb = "conversation.store"    // ids, created or changed
	ConversationUpdate   Verb = "conversation.update"   // ids: pinned or excluded
	ConversationDelete   Verb = "conversation.delete"   // ids
	ConversationUndelete Verb = "conversation.undelete" // ids: a deletion was undone
	ImportCreate         Verb = "import.create"         // id: a file was uploaded
	ImportReject         Verb = "import.reject"         // id: a conversation was too large to store
	ImportFinish         Verb = "import.finish"         // id
	AccountExport        Verb = "account.export"        // no objects
	AccountDelete        Verb = "account.delete"        // no objects: everything the user owned
	SessionCreate        Verb = "session.create"        // fingerprint: a sign-in
	SessionDelete        Verb = "session.delete"        // fingerprint: a sign-out
	SessionLink          Verb = "session.link"          // fingerprint: an administrator created a one-time sign-in link
	TokenCreate          Verb = "token.create"          // fingerprint
	TokenRevoke          Verb = "token.revoke"          // fingerprints
	PasswordUpdate       Verb = "password.update"       // no objects: the user replaced the password
	AppConnect           Verb = "app.connect"           // id of the grant, client id
	AppToken             Verb = "app.token"             // id of the grant, client id: tokens were issued
	AppDisconnect        Verb = "app.disconnect"        // id of the grant
	UserCreate           Verb = "user.create"           // no objects
	UserUpdate           Verb = "user.update"           // no objects: the email address
	UserActivate         Verb = "user.activate"         // no objects
	UserDeactivate       Verb = "user.deactivate"       // no objects: access ends, data is retained
	UserDelete           Verb = "user.delete"           // no objects: access ends, deletion of the data begins
	UserErase            Verb = "user.erase"            // no objects: no data of the user remains
	ApplicationCreate    Verb = "application.create"    // name
	ApplicationUpdate    Verb = "application.update"    // name: scopes, origins or rate
	ApplicationDelete    Verb = "application.delete"    // no objects: its keys are revoked
	TenantCreate         Verb = "tenant.create"         // id
	TenantUpdate         Verb = "tenant.update"         // id: settings
	TenantSuspend        Verb = "tenant.suspend"        // id
	TenantResume         Verb = "tenant.resume"         // id
	TenantQuota          Verb = "tenant.quota"          // id
	TenantAdopt          Verb = "tenant.adopt"          // id: a Tenant resource took over retained data
	TenantRetire         Verb = "tenant.retire"         // id: access ends, data is retained
	TenantDelete         Verb = "tenant.delete"         // id: access ends, deletion of the data begins
	TenantErase          Verb = "tenant.erase"          // id: no data of the tenant remains
	TenantDomains        Verb = "tenant.domains"        // id: domains of users who sign in with an identity provider
	TenantReadmit        Verb = "tenant.readmit"        // id: a removed address may sign in again
	TenantCopy           Verb = "tenant.copy"           // id: copied to another database
	TenantReassign       Verb = "tenant.reassign"       // id: another namespace may adopt the data
	TenantRevoke         Verb = "tenant.revoke"         // id: all tokens, passwords, sessions and apps
	WebhookCreate        Verb = "webhook.create"        // name
	WebhookUpdate        Verb = "webhook.update"        // name: the secret was replaced
	WebhookReplay        Verb = "webhook.replay"        // name: events are delivered again
	WebhookDelete        Verb = "webhook.delete"        // name
	IndexRebuild         Verb = "index.rebuild"         // id of the tenant
	IndexRepair          Verb = "index.repair"          // id of the tenant
	AuditExport          Verb = "audit.export"          // id of the tenant
	ErasureRepeat        Verb = "erasure.repeat"        // kind: a revocation was repeated after a restore of the database
	ErasuresStop         Verb = "erasures.stop"         // recording of erasures ended, of the Installation
)

// Installation is the chain of changes that belong to no tenant, and of sessions of platform
// administrators, whose objects are the fingerprint, and the issuer and subject of the user.
const Installation tenant.ID = "00000000-0000-0000-0000-000000000000"

// MaxObjects is the number of objects of a record. A change of more objects has several
// records, so that each object is in exactly one.
const MaxObjects = 100

// Record is a sealed record of the audit log. The order of the fields is the order in
// which they are hashed.
type Record struct {
	Sequence    int64     `json:"seq"`            // in the chain of the tenant, from 1
	At          time.Time `json:"at"`             // of the change; not strictly increasing
	Tenant      tenant.ID `json:"tenant"`         // whose data changed
	User        string    `json:"user,omitempty"` // pseudonym of the user whose data changed
	Actor       string    `json:"actor"`          // a tenant.ActorKind
	Via         string    `json:"via,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	App         string    `json:"app,omitempty"`
	Verb        Verb      `json:"verb"`
	Objects     []string  `json:"objects,omitempty"`
	Previous    string    `json:"prev"` // hash of the preceding record of the tenant
	Hash        string    `json:"hash,omitempty"`
}

// Sum returns the hash of the record: SHA-256 of its JSON without the hash.
func (r Record) Sum() (string, error) {
	r.Hash = ""
	text, err := encode(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Head is the end of a tenant's chain.
type Head struct {
	Sequence int64  // 0 for an empty chain
	Hash     string // of the last record
}

// Seal appends a record to the chain.
func (h *Head) Seal(r *Record) error {
	r.Sequence, r.Previous, r.At = h.Sequence+1, h.Hash, r.At.UTC()
	sum, err := r.Sum()
	if err != nil {
		return err
	}
	r.Hash = sum
	*h = Head{Sequence: r.Sequence, Hash: r.Hash}
	return nil
}

func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode audit record: %w", err)
	}
	return text, nil
}

// Store is the audit log. internal/postgres implements it.
type Store interface {
	// PendingTenants returns the tenants with records that are not sealed yet.
	PendingTenants(ctx context.Context) ([]tenant.ID, error)
	// SealRecords seals the pending records of a tenant. If another process is sealing them, it does nothing, or waits briefly
	// and returns ErrSealing if that was not enough.
	SealRecords(ctx context.Context, id tenant.ID, wait bool) error
	// UserRecords returns up to limit sealed records of a user after a sequence number,
	// oldest first.
	UserRecords(ctx context.Context, scope tenant.Scope, after int64, limit int) ([]Record, error)
	// RecentRecords returns up to limit sealed records of a user before a sequence number,
	// newest first and without hashes; 0 begins with the newest.
	RecentRecords(ctx context.Context, scope tenant.Scope, before int64, limit int) ([]Record, error)
	// TenantRecords calls fn with the head of the chain and then iterates over all sealed
	// records up to it, oldest first. fn may be slow: nothing waits for it.
	TenantRecords(ctx context.Context, id tenant.ID, fn func(Head, iter.Seq2[Record, error]) error) error
}
