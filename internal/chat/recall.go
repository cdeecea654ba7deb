package chat

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	// DefaultRecallTokens is how long a recall's content is that names no length.
	DefaultRecallTokens = 600
	// MaxRecallTokens is the longest content.
	MaxRecallTokens = 2000
	// MaxQueries is the most questions one recall asks.
	MaxQueries = 15
	// Extractive names the model of content that is the excerpts themselves.
	Extractive = "extractive"

	// parallelSearches bounds what one request asks of the stores at a time.
	parallelSearches = 5
	// shortQuery is how many words a question has that says little by itself:
	// what was talked of last says what it is about.
	shortQuery = 5
	// maxHint is how much of that is searched for with it, in bytes.
	maxHint = 300
	// turnTokens is a low estimate of what a message takes of the content.
	turnTokens = 20
)

// RecallInput asks a user's active conversations one or more questions.
type RecallInput struct {
	Queries []RecallQuery // 1 to MaxQueries
	Many    bool          // they were asked as a list; for messages only
	// Context is what the conversation that recalls is about, History its last
	// turns: they help to understand a short question.
	Context  string
	History  []Turn
	Platform string // "" for all
	// After and Before narrow to messages written at or after the one and
	// before the other; zero for open.
	After, Before time.Time
}

// RecallQuery is a question with the length of its answer.
type RecallQuery struct {
	Text      string
	MaxTokens int // 1 to MaxRecallTokens; others are taken as the nearest
}

// Turn is a message of the conversation that recalls.
type Turn struct {
	Role, Content string
}

// Validate reports what is wrong with the input, as one Invalid error. Names
// are those of the request: query, or queries[i].query of a list.
func (in RecallInput) Validate() error {
	var f fault.Fields
	if len(in.Queries) == 0 || len(in.Queries) > MaxQueries {
		f.Add("queries", "must hold 1 to %d questions, not %d", MaxQueries, len(in.Queries))
		return f.Err()
	}
	for i, q := range in.Queries {
		name := "query"
		if in.Many {
			name = fmt.Sprintf("queries[%d].query", i)
		}
		if strings.TrimSpace(q.Text) == "" {
			f.Add(name, "is required and must not be blank")
		}
		checkString(&f, name, q.Text)
	}
	checkString(&f, "platform", in.Platform)
	checkString(&f, "conversationContext", in.Context)
	for i, t := range in.History {
		checkString(&f, fmt.Sprintf("conversationHistory[%d].content", i), t.Content)
	}
	return f.Err()
}

// Recollection is what is recalled for one question.
type Recollection struct {
	Query   string
	Content string // cites its sources as [1], [2], …
	Tokens  int    // of Content, at most what was asked for
	Sources []RecallSource
	Model   string // Extractive, or the chat model that wrote Content
}

// RecallSource is a message that the content cites.
type RecallSource struct {
	Conversation Conversation
	Message      Message
	Score        float64 // 0 to 1, comparable within one Recollection
}

// Recall answers each question, in order, from the user's active
// conversations, and says whether any was answered without all of the vector
// store.
func (s *Service) Recall(ctx context.Context, who tenant.Identity, in RecallInput) ([]Recollection, bool, error) {
	if err := in.Validate(); err != nil {
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
	places := make(chan struct{}, parallelSearches)
	var wait sync.WaitGroup
	for i, q := range in.Queries {
		wait.Go(func() {
			a := &answers[i]
			if a.Recollection, a.degraded, a.err = s.recall(ctx, who, in, q, places); a.err != nil {
				cancel() // the others are not waited for
			}
		})
	}
	wait.Wait()
	out, degraded := make([]Recollection, len(answers)), false
	var failed error
	for i, a := range answers {
		out[i], degraded = a.Recollection, degraded || a.degraded
		// The first failure cancels the others: it is the one to tell.
		if a.err != nil && (failed == nil || isCanceled(failed)) {
			failed = a.err
		}
	}
	if failed != nil {
		return nil, false, failed
	}
	return out, degraded, nil
}

// recall answers one question. places bounds how many are searched for at once.
func (s *Service) recall(ctx context.Context, who tenant.Identity, in RecallInput, q RecallQuery, places chan struct{}) (Recollection, bool, error) {
	budget := min(max(q.MaxTokens, 1), MaxRecallTokens)
	places <- struct{}{}
	found, degraded, err := s.find(ctx, who,
		SearchInput{Query: q.Text, Platform: in.Platform, Limit: min(max(budget/turnTokens, 10), MaxResults)},
		retrieve.Query{Text: in.searchText(q.Text), After: in.After, Before: in.Before})
	<-places
	if err != nil {
		return Recollection{}, false, fmt.Errorf("recall: %w", err)
	}
	r := recollected{found: found, places: make(map[Position]SearchResult, len(found))}
	for _, f := range found {
		r.places[Position{f.Conversation.ID, f.Message.Index}] = f
	}
	out, ok := s.synthesize(ctx, in, q.Text, budget, r)
	if !ok {
		_, end := trace.Begin(ctx, trace.Pack)
		packed := retrieve.Pack(r.excerpts(), budget, s.count)
		end()
		out = Recollection{Content: packed.Content, Tokens: packed.Tokens, Sources: r.sources(packed.Sources), Model: Extractive}
	}
	out.Query = q.Text
	return out, degraded, nil
}

// searchText is what is searched for: the question, and with a short one what
// was talked of last.
func (in RecallInput) searchText(question string) string {
	if len(strings.Fields(question)) > shortQuery {
		return question
	}
	hint := in.Context
	for i := len(in.History) - 1; i >= 0 && strings.TrimSpace(hint) == ""; i-- {
		if in.History[i].Content != question {
			hint = in.History[i].Content
		}
	}
	if len(hint) > maxHint {
		hint = strings.ToValidUTF8(hint[:maxHint], "")
	}
	return strings.TrimSpace(question + "\n" + hint)
}

// count counts a text's tokens to the end.
func (s *Service) count(text string) int { return s.CountTokens(text, math.MaxInt) }

// recollected is what was found for a question.
type recollected struct {
	found  []SearchResult
	places map[Position]SearchResult
}

func (r recollected) excerpts() []retrieve.Excerpt {
	out := make([]retrieve.Excerpt, len(r.found))
	for i, f := range r.found {
		out[i] = retrieve.Excerpt{
			Owner: f.Conversation.ID, Title: f.Conversation.Title, Seq: f.Message.Index, Sender: string(f.Message.Sender),
			At: f.Message.CreatedAt, Text: f.Message.Text, Start: f.Start, End: f.Start + len(f.Text), Score: f.Score,
		}
	}
	return out
}

func (r recollected) sources(list []retrieve.Source) []RecallSource {
	out := make([]RecallSource, len(list))
	for i, source := range list {
		f := r.places[Position{source.Owner, source.Seq}]
		out[i] = RecallSource{Conversation: f.Conversation, Message: f.Message, Score: source.Score}
	}
	return out
}
