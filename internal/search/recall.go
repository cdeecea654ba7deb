package search

import (
	"context"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Recall answers questions, like chat.Service.Recall, from what it is to include; empty
// for all.
func (s Service) Recall(ctx context.Context, who tenant.Identity, in chat.RecallInput, include []Kind) ([]chat.Recollection, bool, error) {
	var f fault.Fields
	CheckKinds(&f, include)
	if err := f.ErrWith(in); err != nil {
		return nil, false, err
	}
	included := Input{Include: include}
	if included.includes(Memories) {
		in.Memories = s
	}
	in.OnlyMemories = !included.includes(Chats)
	return s.Chats.Recall(ctx, who, in)
}

var _ chat.MemoryFinder = Service{}

// FindMemories implements chat.MemoryFinder.
func (s Service) FindMemories(ctx context.Context, who tenant.Identity, query string, limit int, minScore *float64) ([]chat.RecalledMemory, bool, error) {
	listing, err := s.Memories.List(ctx, unlimited(who), memory.ListInput{Query: strings.TrimSpace(query), Count: limit, MinScore: minScore})
	if err != nil {
		return nil, false, err
	}
	out := make([]chat.RecalledMemory, len(listing.Memories))
	for i, m := range listing.Memories {
		out[i] = chat.RecalledMemory{ID: m.ID, Text: m.Text, At: m.CreatedAt, Score: m.Score}
	}
	return slices.Clip(out), listing.Degraded, nil
}
