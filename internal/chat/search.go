package chat

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// DefaultResults is how many passages a search gives that names no limit.
	DefaultResults = 20
	// MaxResults is the highest limit.
	MaxResults = 100
	// DefaultAround is how many messages come with a passage on either side.
	DefaultAround = 4
	// MaxAround is the most that may be asked for.
	MaxAround = 20
)

// SearchInput is a question to a user's active conversations.
type SearchInput struct {
	Query    string
	Limit    int       // 1 to MaxResults
	Platform string    // "" for all
	Around   int       // messages on either side, 0 to MaxAround
	From, To time.Time // conversations created from From, before To; zero for open
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in SearchInput) Validate() error {
	var f fault.Fields
	if strings.TrimSpace(in.Query) == "" {
		f.Add("query", "is required and must not be blank")
	}
	checkString(&f, "query", in.Query)
	checkString(&f, "provider", in.Platform)
	if in.Limit < 1 || in.Limit > MaxResults {
		f.Add("limit", "must be 1 to %d, not %d", MaxResults, in.Limit)
	}
	if in.Around < 0 || in.Around > MaxAround {
		f.Add("contextChunks", "must be 0 to %d, not %d", MaxAround, in.Around)
	}
	return f.Err()
}

// SearchResult is a passage that answers a search.
type SearchResult struct {
	Passage
	Text  string  // the piece of the message that was found
	Start int     // where in the message it begins, in bytes
	Score float64 // 0 to 1, comparable within one answer
}

// Search returns the best passages, best first, and whether they were found
// without all of the vector store.
func (s *Service) Search(ctx context.Context, who tenant.Identity, in SearchInput) ([]SearchResult, bool, error) {
	if err := in.Validate(); err != nil {
		return nil, false, err
	}
	return s.find(ctx, who, in, retrieve.Query{Text: in.Query, From: in.From, To: in.To})
}

// find asks the query of the input's platform and reads what is found.
// Messages of the time that the input's question names come first.
func (s *Service) find(ctx context.Context, who tenant.Identity, in SearchInput, q retrieve.Query) ([]SearchResult, bool, error) {
	q.Kind, q.Limit = retrieve.Chat, in.Limit
	if in.Platform != "" {
		q.Group = retrieve.GroupOf(in.Platform)
	}
	q.Window, _ = retrieve.ParseWindow(in.Query, s.Now().UTC())
	ranking, err := s.Searcher.Search(ctx, who.Scope, who.Placement, q)
	if err != nil {
		return nil, false, fmt.Errorf("search conversations: %w", err)
	}
	out, err := s.results(ctx, who.Scope, in, ranking.Found)
	return out, ranking.Degraded, err
}

// results reads the passages of a ranking, in its order; those that are gone
// are left out.
func (s *Service) results(ctx context.Context, scope tenant.Scope, in SearchInput, found []retrieve.Found) ([]SearchResult, error) {
	if len(found) == 0 {
		return nil, nil
	}
	places := make([]Position, len(found))
	for i, f := range found {
		places[i] = Position{f.Owner, f.Seq}
	}
	list, err := s.Passages.Passages(ctx, scope, places, in.Around)
	if err != nil {
		return nil, fmt.Errorf("read passages: %w", err)
	}
	at := make(map[Position]Passage, len(list))
	for _, p := range list {
		at[Position{p.Conversation.ID, p.Message.Index}] = p
	}
	out := make([]SearchResult, 0, len(found))
	for i, f := range found {
		p, ok := at[places[i]]
		// A group is a hash of the platform's name; the name itself decides.
		if !ok || in.Platform != "" && p.Conversation.Platform != in.Platform {
			continue
		}
		text, start := piece(p.Message.Text, f.Start, f.End)
		out = append(out, SearchResult{Passage: p, Text: text, Start: start, Score: f.Score})
	}
	return out, nil
}

// piece returns the part of the text and where it begins, or all of it when
// the message was replaced since and the place does not fit it any more.
func piece(text string, start, end int) (string, int) {
	if start < 0 || end > len(text) || start >= end {
		return text, 0
	}
	if !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
		return text, 0
	}
	return text[start:end], start
}
