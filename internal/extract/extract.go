package extract

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxAnswers is how often the model is asked before the messages are stored as they are.
const maxAnswers = 3

// MaxPending is the maximum number of unfinished extractions of a user.
const MaxPending = 1000

// ErrTooMany refuses an extraction of a user with MaxPending unfinished ones.
var ErrTooMany error = &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute,
	Message: fmt.Sprintf("%d requests of this user are already waiting for fact extraction; try again later, or store messages as they are", MaxPending)}

// ErrUnknown is returned for an extraction that does not exist.
var ErrUnknown error = fault.New(fault.NotFound, "the event was not found; events are kept for 7 days")

// Message is a message from which facts are extracted.
type Message struct {
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
}

// Input is what facts are extracted from.
type Input struct {
	Messages   []Message
	Source     string            // of the memories
	Attributes memory.Attributes // of the memories
}

// Extraction is an unfinished extraction.
type Extraction struct {
	Input
	Facts  []string // nil until the model has answered
	Stored int      // number of the facts that are stored
}

// State is the state of an extraction.
type State struct {
	ID         string
	Failure    string // why facts were not stored; "" otherwise
	CreatedAt  time.Time
	FinishedAt time.Time // zero before
}

// Args are the arguments of the job.
type Args struct {
	Tenant     tenant.ID     `json:"tenant"`
	User       tenant.UserID `json:"user"`
	Extraction string        `json:"extraction"`
}

// Kind returns the kind of the job.
func (Args) Kind() string { return "memory.extract" }

// Store stores extractions. internal/postgres implements it.
type Store interface {
	// OpenExtraction returns an unfinished extraction and the identity of its user. It
	// returns NotFound if it is finished or was deleted.
	OpenExtraction(ctx context.Context, a Args) (tenant.Identity, Extraction, error)
	// SaveFacts stores the facts, unless there are any.
	SaveFacts(ctx context.Context, scope tenant.Scope, id string, facts []string) error
	// FinishExtraction deletes the messages and the facts. failure is the reason why facts
	// were not stored, "" if all are.
	FinishExtraction(ctx context.Context, scope tenant.Scope, id, failure string) error
}

// Memories stores memories. memory.Service implements it.
type Memories interface {
	Create(ctx context.Context, who tenant.Identity, in memory.CreateInput) (memory.Created, error)
}

// Runner runs the jobs.
type Runner struct {
	Store    Store
	Memories Memories
	Model    *OpenAI // nil stores messages as they are
	Log      *slog.Logger
}

// Run stores the facts of an extraction as memories. The facts are saved before the first
// memory is created: another attempt neither asks the model again nor stores a fact twice.
func (r *Runner) Run(ctx context.Context, a Args) error {
	for {
		who, x, err := r.Store.OpenExtraction(ctx, a)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if x.Facts != nil {
			if err = r.store(ctx, who, a.Extraction, x); fault.Is(err, fault.NotFound) {
				continue // it or its user was deleted, or another worker stored a fact
			}
			return err
		}
		facts, err := r.facts(ctx, a, x.Messages)
		if err != nil {
			return err
		}
		if err := r.Store.SaveFacts(ctx, who.Scope, a.Extraction, facts); err != nil {
			return err
		}
	}
}

// facts asks the model, and returns the messages as they are if its answers are invalid.
func (r *Runner) facts(ctx context.Context, a Args, messages []Message) ([]string, error) {
	for attempt := 0; attempt < maxAnswers && r.Model != nil; attempt++ {
		facts, err := r.Model.Extract(ctx, messages)
		if err == nil {
			return facts, nil
		}
		if !errors.Is(err, ErrInvalid) {
			return nil, err
		}
		r.Log.WarnContext(ctx, "the chat model extracted no facts", "tenant", a.Tenant, "extraction", a.Extraction, "attempt", attempt+1, "error", err)
	}
	facts := make([]string, len(messages))
	for i, m := range messages {
		facts[i] = m.Text
	}
	return facts, nil
}

// store creates the memories that are missing. A quota that is exceeded ends the extraction.
func (r *Runner) store(ctx context.Context, who tenant.Identity, id string, x Extraction) error {
	failure := ""
	for i := x.Stored; i < len(x.Facts); i++ {
		_, err := r.Memories.Create(ctx, who, memory.CreateInput{
			Text: x.Facts[i], Source: x.Source, Attributes: x.Attributes, Result: memory.Result{Extraction: id, Index: i},
		})
		if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.Forbidden {
			failure = fmt.Sprintf("%d of %d facts were not stored: %s", len(x.Facts)-i, len(x.Facts), refused.Message)
			break
		}
		if err != nil {
			return err
		}
	}
	return r.Store.FinishExtraction(ctx, who.Scope, id, failure)
}
