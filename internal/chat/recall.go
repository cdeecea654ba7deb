package chat

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	// DefaultRecallTokens is the default length of a recall's content.
	DefaultRecallTokens = 600
	// MaxRecallTokens is the maximum length of the content.
	MaxRecallTokens = 2000
	// MaxQueries is the maximum number of questions per recall.
	MaxQueries = 15
	// Extractive is the model of content that consists of excerpts.
	Extractive = "extractive"

	// parallelSearches limits the concurrent searches of one request.
	parallelSearches = 5
	// shortQuery is the number of words up to which a question is searched together
	// with the context of the conversation.
	shortQuery = 5
	// maxHint limits the context that is added to a short question, in bytes.
	maxHint = 300
	// turnTokens is a low estimate of the tokens of a message in the content.
	turnTokens = 20
)

// RecallInput is one or more questions about the user's active conversations.
type RecallInput struct {
	Queries []RecallQuery // 1 to MaxQueries
	Many    bool          // sent as a list; affects error messages only
	// Context summarizes the conversation that recalls, History is its last turns.
	// They complete short questions.
	Context string
	History []Turn
	// Platform is a hint: it is ignored if the user has no active conversation of it.
	Platform string // "" for all
	// After (inclusive) and Before (exclusive) limit the time of messages; zero for
	// no limit.
	After, Before time.Time
	// Zone is the user's time zone, for times that a question mentions; nil for UTC.
	Zone *time.Location
	// Memories finds memories to include; nil for none. OnlyMemories omits messages.
	Memories     MemoryFinder
	OnlyMemories bool
	// MinScore omits messages with a lower score; nil for relevant messages only.
	MinScore *float64
}

// RecallQuery is a question with the maximum length of its answer.
type RecallQuery struct {
	Text      string
	MaxTokens int // clamped to 1 to MaxRecallTokens
}

// Turn is a message of the conversation that recalls.
type Turn struct {
	Role, Content string
}

// Validate returns one Invalid error that lists every invalid field, named query,
// or queries[i].text for a list.
func (in RecallInput) Validate() error {
	var f fault.Fields
	if len(in.Queries) == 0 || len(in.Queries) > MaxQueries {
		f.Add("queries", "must contain 1 to %d questions, not %d", MaxQueries, len(in.Queries))
		return f.Err()
	}
	for i, q := range in.Queries {
		name := "query"
		if in.Many {
			name = fmt.Sprintf("queries[%d].text", i)
		}
		if textrule.IsBlank(q.Text) {
			f.Add(name, "is required and must not be blank")
		}
		retrieve.CheckQuery(&f, name, q.Text)
		checkString(&f, name, q.Text)
	}
	retrieve.CheckMinScore(&f, in.MinScore)
	checkString(&f, "platform", in.Platform)
	checkString(&f, "recall context", in.Context)
	for i, t := range in.History {
		checkString(&f, fmt.Sprintf("recall history[%d]", i), t.Content)
	}
	return f.Err()
}

// Recollection is the answer to one question.
type Recollection struct {
	Query   string
	Content string // cites its sources as [1], [2], …
	Tokens  int    // of Content, at most MaxTokens
	Sources []RecallSource
	// Platform is the platform that was searched, or AllPlatforms.
	Platform string
	Model    string // Extractive, or the chat model that wrote Content
}

// RecallSource is a message or a memory that Content cites.
type RecallSource struct {
	Memory  *RecalledMemory // nil for a message
	Passage                 // its best piece, without context
	Score   float64         // 0 to 1: the probability that it is relevant
}

// Recall answers each question, in order, from the user's active conversations,
// and reports whether an answer is degraded because the vector store was not
// fully available.
func (s *Service) Recall(ctx context.Context, who tenant.Identity, in RecallInput) ([]Recollection, bool, error) {
	if err := in.Validate(); err != nil {
		return nil, false, err
	}
	var err error
	if in.Platform, err = s.hint(ctx, who.Scope, in.Platform); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		Recollection
		degraded bool
		err      error
	}
	answers := make([]answer, len(in.Queries))
	slots := make(chan struct{}, parallelSearches)
	var wait sync.WaitGroup
	for i, q := range in.Queries {
		wait.Go(func() {
			a := &answers[i]
			if a.Recollection, a.degraded, a.err = s.recall(ctx, who, in, q, slots); a.err != nil {
				cancel() // the other questions
			}
		})
	}
	wait.Wait()
	out, degraded := make([]Recollection, len(answers)), false
	var failed error
	for i, a := range answers {
		out[i], degraded = a.Recollection, degraded || a.degraded
		// The first error canceled the other searches.
		if a.err != nil && (failed == nil || isCanceled(failed)) {
			failed = a.err
		}
	}
	if failed != nil {
		return nil, false, failed
	}
	return out, degraded, nil
}

// recall answers one question. slots limits the concurrent searches.
func (s *Service) recall(ctx context.Context, who tenant.Identity, in RecallInput, q RecallQuery, slots chan struct{}) (Recollection, bool, error) {
	budget := min(max(q.MaxTokens, 1), MaxRecallTokens)
	slots <- struct{}{}
	r, degraded, err := s.collect(ctx, who, in, q, min(max(budget/turnTokens, 10), MaxResults))
	<-slots
	if err != nil {
		return Recollection{}, false, fmt.Errorf("recall: %w", err)
	}
	out, ok := s.synthesize(ctx, in, q.Text, budget, r)
	if !ok {
		_, end := trace.Begin(ctx, trace.Pack)
		packed := retrieve.Pack(r.excerpts(), budget, s.count)
		end()
		out = Recollection{Content: packed.Content, Tokens: packed.Tokens, Sources: r.sources(packed.Sources), Model: Extractive}
	}
	out.Query, out.Platform = q.Text, cmp.Or(in.Platform, AllPlatforms)
	return out, degraded, nil
}

// searchText returns the text to search for: the question, with context if it is
// short.
func (in RecallInput) searchText(question string) string {
	if len(strings.Fields(question)) > shortQuery {
		return question
	}
	hint := in.Context
	for i := len(in.History) - 1; i >= 0 && textrule.IsBlank(hint); i-- {
		if in.History[i].Content != question {
			hint = in.History[i].Content
		}
	}
	if len(hint) > maxHint {
		hint = strings.ToValidUTF8(hint[:maxHint], "")
	}
	return strings.TrimSpace(question + "\n" + hint)
}

// count returns the exact number of tokens of a text.
func (s *Service) count(text string) int { return s.CountTokens(text, math.MaxInt) }
