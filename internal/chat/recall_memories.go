package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MemoryFinder finds memories for a recall.
type MemoryFinder interface {
	// FindMemories returns the best memories, best first, and reports whether the
	// result is degraded. Scores are comparable to those of messages.
	FindMemories(ctx context.Context, who tenant.Identity, query string, limit int, minScore *float64) ([]RecalledMemory, bool, error)
}

// RecalledMemory is a memory in the answer of a recall.
type RecalledMemory struct {
	ID    string
	Text  string
	At    time.Time // when it was stored
	Score float64
}

// memoriesOwner is the owner of the excerpts of memories, which share a heading. It is
// not the id of a conversation.
const memoriesOwner = "memories"

// collect searches what the recall includes.
func (s *Service) collect(ctx context.Context, who tenant.Identity, in RecallInput, q RecallQuery, limit int) (recollected, bool, error) {
	var r recollected
	var degraded bool
	if in.Memories != nil {
		var err error
		if r.memories, degraded, err = in.Memories.FindMemories(ctx, who, in.searchText(q.Text), limit, in.MinScore); err != nil {
			return r, false, fmt.Errorf("find memories: %w", err)
		}
	}
	if in.OnlyMemories {
		return r, degraded, nil
	}
	found, chatsDegraded, err := s.find(ctx, who,
		SearchInput{Query: q.Text, Platform: in.Platform, MinScore: in.MinScore, Limit: limit, Zone: in.Zone},
		retrieve.Query{Text: in.searchText(q.Text), After: in.After, Before: in.Before})
	if err != nil {
		return r, false, err
	}
	r.found, r.byPosition = found, make(map[Position]SearchResult, len(found))
	for _, f := range found {
		r.byPosition[f.Position.withoutUnit()] = f
	}
	return r, degraded || chatsDegraded, nil
}

// recollected is the search result for a question.
type recollected struct {
	memories   []RecalledMemory
	found      []SearchResult
	byPosition map[Position]SearchResult
}

func (r recollected) empty() bool { return len(r.memories)+len(r.found) == 0 }

func (r recollected) excerpts() []retrieve.Excerpt {
	out := make([]retrieve.Excerpt, 0, len(r.memories)+len(r.found))
	for i, m := range r.memories {
		out = append(out, retrieve.Excerpt{Owner: memoriesOwner, Title: retrieve.MemoryHeading, Seq: i, Sender: retrieve.MemorySender, Text: m.Text, End: len(m.Text), Score: m.Score})
	}
	for _, f := range r.found {
		out = append(out, retrieve.Excerpt{
			Owner: f.Conversation.ID, Title: f.Conversation.Title, Seq: f.Message.Index, Sender: string(f.Message.Sender),
			At: f.Message.CreatedAt, Text: f.Message.Text, Start: f.Start, End: f.End, Score: f.Score,
		})
	}
	return out
}

// at returns the time of a source. Excerpts of memories have none, because they share a heading.
func (r recollected) at(source retrieve.Source) time.Time {
	if source.Owner == memoriesOwner {
		return r.memories[source.Seq].At
	}
	return source.At
}

func (r recollected) sources(list []retrieve.Source) []RecallSource {
	out := make([]RecallSource, len(list))
	for i, source := range list {
		if source.Owner == memoriesOwner {
			out[i] = RecallSource{Memory: &r.memories[source.Seq], Score: source.Score}
			continue
		}
		f := r.byPosition[Position{Conversation: source.Owner, Index: source.Seq, Start: source.Start, End: source.End}]
		out[i] = RecallSource{Passage: f.Passage, Score: source.Score}
	}
	return out
}
