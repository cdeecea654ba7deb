package mem0

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Extractions extract facts from messages in the background. internal/postgres implements it.
type Extractions interface {
	// CreateExtraction stores messages until facts are extracted from them, and returns an id.
	CreateExtraction(ctx context.Context, scope tenant.Scope, in extract.Input) (string, error)
	// ExtractionState returns the state of an extraction of a user or, with ofApplications, of
	// any user of the tenant's applications.
	ExtractionState(ctx context.Context, scope tenant.Scope, ofApplications bool, id string) (extract.State, error)
}

// Statuses of an event.
const (
	statusPending   = "PENDING"
	statusSucceeded = "SUCCEEDED"
	statusFailed    = "FAILED"
)

// pendingOut is the response for messages from which facts are extracted in the background.
type pendingOut struct {
	Message string `json:"message"`
	Status  string `json:"status"`
	EventID string `json:"event_id"`
}

// infers reports whether facts are extracted from the messages of a request.
func (e *Endpoint) infers(in addIn) bool {
	return e.Extractions != nil && (in.Infer == nil || *in.Infer)
}

func (e *Endpoint) extract(ctx context.Context, who tenant.Identity, texts []indexedText, attributes memory.Attributes) (pendingOut, error) {
	messages := make([]extract.Message, len(texts))
	for i, t := range texts {
		messages[i] = extract.Message{Role: t.role, Text: t.text}
	}
	id, err := e.Extractions.CreateExtraction(ctx, who.Scope, extract.Input{Messages: messages, Source: source, Attributes: attributes})
	return pendingOut{"Facts are extracted from the messages in the background", statusPending, id}, err
}

type eventOut struct {
	ID        string  `json:"id"`
	EventType string  `json:"event_type"`
	Status    string  `json:"status"`
	Error     *string `json:"error"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
	Latency   float64 `json:"latency"` // milliseconds
}

// event returns the state of an extraction. The request does not name the user, so the key of
// an application finds those of all users of applications.
func (e *Endpoint) event(ctx context.Context, r Request) (any, error) {
	if e.Extractions == nil {
		return nil, extract.ErrUnknown
	}
	who, ofApplications := r.Who, r.Who.Application != nil && r.User == ""
	if !ofApplications {
		var err error
		if who, err = e.actor(ctx, r, "", false); err != nil {
			return nil, err
		}
	}
	s, err := e.Extractions.ExtractionState(ctx, who.Scope, ofApplications, r.Param("event"))
	if err != nil {
		return nil, err
	}
	out := eventOut{ID: s.ID, EventType: "ADD", Status: statusPending, Error: optional(s.Failure), CreatedAt: chat.Stamp(s.CreatedAt), UpdatedAt: chat.Stamp(s.CreatedAt)}
	if !s.FinishedAt.IsZero() {
		out.Status, out.UpdatedAt = statusSucceeded, chat.Stamp(s.FinishedAt)
		out.Latency = float64(s.FinishedAt.Sub(s.CreatedAt)) / float64(time.Millisecond)
	}
	if s.Failure != "" {
		out.Status = statusFailed
	}
	return out, nil
}
