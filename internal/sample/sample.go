package sample

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// Source is the source of sample memories, by which they are recognized.
	Source = "sample data"
	// Platform is the platform of sample conversations, by which they are recognized.
	Platform = "mnemo-sample"

	// page is the number of memories or conversations removed at a time.
	page = 100
)

// Service adds and removes sample data.
type Service struct {
	Memories *memory.Service
	Chats    *chat.Service
}

// Add stores the sample data, dated relative to now. What the user already has is not
// stored twice. It returns Forbidden when a quota is exceeded.
func (s Service) Add(ctx context.Context, who tenant.Identity, now time.Time) error {
	for _, m := range slices.Backward(memories) { // the list shows what was stored last first
		text := now.AddDate(0, 0, -m.daysAgo).UTC().Format(time.DateOnly) + " " + m.text
		if _, err := s.Memories.Create(ctx, who, memory.CreateInput{Text: text, Source: Source}); err != nil {
			return fmt.Errorf("add sample memory: %w", err)
		}
	}
	for _, c := range conversations {
		if _, err := s.Chats.Ingest(ctx, who, c.input(now)); err != nil {
			return fmt.Errorf("add sample conversation: %w", err)
		}
	}
	return nil
}

// Remove deletes the sample data, also what the user has edited or moved.
func (s Service) Remove(ctx context.Context, who tenant.Identity) error {
	for {
		listing, err := s.Memories.List(ctx, who, memory.ListInput{Count: page, Where: filter.Filter{
			Op: filter.Eq, Field: filter.Source, Values: []filter.Value{{Kind: filter.String, Text: Source}},
		}})
		if err != nil {
			return fmt.Errorf("list sample memories: %w", err)
		}
		if len(listing.Memories) == 0 {
			break
		}
		ids := make([]string, len(listing.Memories))
		for i, m := range listing.Memories {
			ids[i] = m.ID
		}
		deleted, err := s.Memories.DeleteMany(ctx, who, ids)
		if err != nil {
			return fmt.Errorf("delete sample memories: %w", err)
		}
		if deleted.Deleted == 0 && deleted.Cause != nil {
			return fmt.Errorf("delete sample memories: %w", deleted.Cause)
		}
	}
	return s.removeChats(ctx, who)
}

func (s Service) removeChats(ctx context.Context, who tenant.Identity) error {
	for {
		found, _, err := s.Chats.List(ctx, who, chat.ConversationFilter{Platform: Platform, Limit: page})
		if err != nil {
			return fmt.Errorf("list sample conversations: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = c.ID
		}
		if _, err := s.Chats.Delete(ctx, who, ids); err != nil {
			return fmt.Errorf("delete sample conversations: %w", err)
		}
	}
}
