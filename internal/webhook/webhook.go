package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Events are the names that select events: * for all, the kinds such as memory.*, and the verbs of the audit log.
var Events = eventNames()

func eventNames() []string {
	kinds, verbs := []string{"*"}, make([]string, 0, len(audit.Verbs))
	for _, v := range audit.Verbs {
		verbs = append(verbs, string(v))
		if k := allOfKind(v); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return append(kinds, verbs...)
}

// allOfKind returns the name of all events of the verb's kind.
func allOfKind(v audit.Verb) string {
	kind, _, _ := strings.Cut(string(v), ".")
	return kind + ".*"
}

// Spec is the configuration of a webhook.
type Spec struct {
	Name   string // unique within the tenant
	URL    string
	Events []string // verbs of audit records, such as memory.create, memory.* or *
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?$`)

// maxURL is the maximum length of a URL.
const maxURL = 2000

// Validate returns one Invalid error for all invalid fields.
func (s Spec) Validate() error {
	var f fault.Fields
	if !nameForm.MatchString(s.Name) {
		f.Add("name", "must have 1 to 63 lower-case letters, digits, dashes and dots, and begin and end with a letter or digit")
	}
	if !isURL(s.URL) {
		f.Add("url", "must be a URL such as https://example.com/events, without user, zone and fragment")
	}
	if len(s.Events) == 0 {
		f.Add("events", "is required: for example memory.create, memory.* or *")
	}
	for _, e := range s.Events {
		if !slices.Contains(Events, e) {
			f.Add("events", "%q must be one of %s", e, strings.Join(Events, ", "))
		}
	}
	return f.Err()
}

// isURL reports whether events can be posted to the URL. A zone names an interface of the sender.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && !strings.Contains(u.Hostname(), "%") &&
		u.User == nil && u.Fragment == "" && len(s) <= maxURL
}

// Matches reports whether the webhook receives records of the verb.
func (s Spec) Matches(verb audit.Verb) bool {
	return slices.ContainsFunc(s.Events, func(e string) bool { return e == "*" || e == string(verb) || e == allOfKind(verb) })
}

// Webhook is a webhook as stored.
type Webhook struct {
	Spec
	Tenant       tenant.ID
	Secrets      []string  // current ones; the first is the newest
	Position     int64     // sequence number of the record before the next event
	Due          time.Time // of the next attempt, or the end of the claim of a job
	Head         int64     // of the last record of the tenant
	Attempts     int       // failed ones of the next event
	FailingSince time.Time
	Disabled     bool
	Skipped      int64  // events that the endpoint refused
	Message      string // of the last failure; begins with NotConnected until a connection was made
	Declared     bool   // in the Tenant, and not created by a command
}

// PausedUntil is when a paused webhook is due: never.
var PausedUntil = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Paused reports whether the webhook delivers nothing because another database has continued the tenant.
func (w Webhook) Paused() bool { return w.Due.Equal(PausedUntil) && !w.Disabled }

// FailingAttempts is the number of failed attempts of an event from which the webhook counts as
// failing in the status of its Tenant.
const FailingAttempts = 2

// NotConnected begins the message of a webhook until a connection to its address was made. A cause may follow.
const NotConnected = "not connected yet"

// Connected reports whether a connection to the address was made since the webhook was created, changed or replayed.
func (w Webhook) Connected() bool { return !strings.HasPrefix(w.Message, NotConnected) }

// Failing reports whether the webhook delivers nothing at present.
func (w Webhook) Failing() bool { return w.Disabled || w.Attempts >= FailingAttempts }

// Record is an audit record to deliver.
type Record struct {
	audit.Record
	UserName string // as applications and administrators know the user; "" without one
}

// Progress is the result of attempts.
type Progress struct {
	From, To int64 // position before and after
	Attempts int   // failed ones of the next event; 0 after a success
	Wait     time.Duration
	Disabled bool
	Skipped  int64
	Message  string
}

// Store stores webhooks. internal/postgres implements it. Its methods change nothing for a job whose claim has ended: another job
// claimed the webhook, or a command or the operator changed it.
type Store interface {
	// NextRecords extends the claim of a job, and returns the webhook and up to limit records after its position. NotFound if
	// the tenant has no such webhook, or the claim has ended.
	NextRecords(ctx context.Context, job Args, lease time.Duration, limit int) (Webhook, []Record, error)
	// SaveProgress returns the new end of the claim; zero if the claim has ended or the position changed meanwhile.
	SaveProgress(ctx context.Context, job Args, p Progress) (time.Time, error)
	// ReleaseWebhook ends the claim of a job, unless the webhook waits for the next attempt.
	ReleaseWebhook(ctx context.Context, job Args) error
	// QueueDeliveries claims each webhook that has something to deliver, and commits a job for it unless one is queued already.
	QueueDeliveries(ctx context.Context, lease time.Duration) error
}

// DeclaredStore stores the webhooks that Tenants declare. internal/postgres implements it.
type DeclaredStore interface {
	// DeclaredWebhooks returns the declared webhooks of a tenant, by name.
	DeclaredWebhooks(ctx context.Context, t tenant.ID) ([]Webhook, error)
	// DeclareWebhook creates or updates a webhook, or nothing if it is stored like this. A replaced
	// secret signs as well for the overlap. A webhook of the name that a command created becomes a
	// declared one. Any change enables it, connects to its address and tries the next event again at once.
	DeclareWebhook(ctx context.Context, t tenant.ID, s Spec, secret string, overlap time.Duration) error
	// DeleteDeclaredWebhook deletes a declared webhook, if there is one.
	DeleteDeclaredWebhook(ctx context.Context, t tenant.ID, name string) error
}

// Args are the arguments of the job that delivers events to a webhook. Due identifies its claim.
type Args struct {
	Tenant  tenant.ID `json:"tenant"`
	Webhook string    `json:"webhook"`
	Due     time.Time `json:"due,omitzero"` // end of the claim; zero in a job of an earlier version
}

// Kind returns the job kind.
func (Args) Kind() string { return "webhook.deliver" }

const (
	secretPrefix = "whsec_"
	// secretSize is the number of random bytes of a secret.
	secretSize = 32
	// minSecret and maxSecret are the limits of the specification, in bytes.
	minSecret, maxSecret = 24, 64
)

// NewSecret returns a secret in the form of the specification.
func NewSecret(random io.Reader) (string, error) {
	raw := make([]byte, secretSize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("generate webhook secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(raw), nil
}

// IsSecret reports whether s is a secret in the form of the specification.
func IsSecret(s string) bool {
	encoded, ok := strings.CutPrefix(s, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && len(raw) >= minSecret && len(raw) <= maxSecret
}
