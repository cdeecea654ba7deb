package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// activateBatch is how many conversations get room in one transaction.
const activateBatch = 100

// RestoreConfig is what takes back accounts. All of it is required.
type RestoreConfig struct {
	Files       chat.ImportFiles
	Restorer    account.Restorer
	CountTokens func(text string) int
}

// Restore returns the Archive that takes back what internal/archive wrote:
// ids, times, versions and states are as they were. It bears being done again
// from the beginning, at any place.
func Restore(c RestoreConfig) Archive {
	return func(ctx context.Context, run chat.ImportRun, file io.ReaderAt) (bool, []string, error) {
		if run.Asked != "" {
			return false, nil, nil
		}
		a, err := archive.Open(file, run.Size, archive.Limits{})
		if errors.Is(err, archive.ErrOther) {
			return false, nil, nil
		}
		if err != nil {
			return true, nil, err
		}
		r := restore{RestoreConfig: c, run: run, from: a}
		warnings, err := r.all(ctx)
		return true, warnings, err
	}
}

// restore is one account being taken back.
type restore struct {
	RestoreConfig
	run  chat.ImportRun
	from *archive.Archive
}

func (r restore) all(ctx context.Context) ([]string, error) {
	var buckets []account.Bucket
	for b, err := range r.from.Buckets() {
		if err != nil {
			return nil, err
		}
		buckets = append(buckets, b)
	}
	done, err := r.Restorer.Begin(ctx, r.run, buckets, int(r.from.Counts.Conversations))
	if err != nil {
		return nil, fmt.Errorf("begin restore: %w", err)
	}
	if done, err = r.memories(ctx, done); err != nil {
		return nil, err
	}
	if err := r.conversations(ctx); err != nil {
		return nil, err
	}
	if err := r.activate(ctx); err != nil {
		return nil, err
	}
	if done.LeftOut == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("memories left out: %d of %d: %s", done.LeftOut, done.Memories, done.Reason)}, nil
}

// memories stores those that are not done.
func (r restore) memories(ctx context.Context, done account.Progress) (account.Progress, error) {
	var batch []account.RestoredMemory
	n, bytes := 0, 0
	store := func() error {
		if len(batch) == 0 {
			return nil
		}
		var err error
		if done, err = r.Restorer.Memories(ctx, r.run, done, batch); err != nil {
			return fmt.Errorf("restore memories: %w", err)
		}
		batch, bytes = nil, 0
		return nil
	}
	before := done.Memories
	for h, err := range r.from.MemoryHistories() {
		if err != nil {
			return done, err
		}
		if n++; n <= before {
			continue
		}
		batch = append(batch, account.RestoredMemory{
			Memory: h.Memory, Earlier: h.Earlier, Tokens: r.CountTokens(h.Text), Units: retrieve.MemoryUnits(h.Text),
		})
		bytes += len(h.Text)
		for _, v := range h.Earlier {
			bytes += len(v.Text)
		}
		if len(batch) == batchEntries || bytes >= batchBytes {
			if err := store(); err != nil {
				return done, err
			}
		}
	}
	return done, store()
}

// conversations stores those that have no row in the ledger.
func (r restore) conversations(ctx context.Context) error {
	ordinals, err := r.Files.Ledger(ctx, r.run)
	if err != nil {
		return err
	}
	done := doneAt(ordinals, int(r.from.Counts.Conversations))
	tools := chat.Tools{CountTokens: r.CountTokens, Build: chat.Units}
	b := &batch{}
	store := func() error {
		if len(b.entries) == 0 {
			return nil
		}
		err := r.Files.Land(ctx, r.run, chat.Batch{Entries: b.entries, AddNotes: sameNotes}, tools)
		b = &batch{}
		return err
	}
	ordinal := -1
	for t, err := range r.from.Transcripts() {
		if err != nil {
			return err
		}
		if ordinal++; done(ordinal) {
			continue
		}
		b.entries = append(b.entries, entry(ordinal, t))
		for _, m := range t.Messages {
			b.bytes += len(m.Text)
		}
		if len(b.entries) == batchEntries || b.bytes >= batchBytes {
			if err := store(); err != nil {
				return err
			}
		}
	}
	return store()
}

func sameNotes(before []byte) ([]byte, error) { return before, nil }

func entry(ordinal int, t archive.Transcript) chat.Entry {
	return chat.Entry{
		Ordinal: ordinal, Name: t.ExternalID,
		Upsert: chat.Upsert{
			ExternalID: t.ExternalID, Platform: t.Platform, PlatformName: t.PlatformName, Title: t.Title,
			CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Messages: t.Messages,
		},
		Restored: &chat.Restored{ID: t.ID, Excluded: t.Status == chat.Excluded, Pinned: t.Pinned},
	}
}

// activate gives room first to those that had it, newest first, so that an
// account comes back as it was. What room is left is anybody's.
func (r restore) activate(ctx context.Context) error {
	type active struct {
		id string
		at time.Time
	}
	var list []active
	for c, err := range r.from.Conversations() {
		if err != nil {
			return err
		}
		if c.Status == chat.Active {
			list = append(list, active{c.ID, c.UpdatedAt})
		}
	}
	slices.SortFunc(list, func(a, b active) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.id, a.id)) })
	for part := range slices.Chunk(list, activateBatch) {
		ids := make([]string, len(part))
		for i, c := range part {
			ids[i] = c.id
		}
		room, err := r.Restorer.Activate(ctx, r.run, ids)
		if err != nil {
			return fmt.Errorf("restore states: %w", err)
		}
		if !room {
			return nil
		}
	}
	return nil
}
