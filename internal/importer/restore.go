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
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// ArchivePlatform is the platform of imports of Mnemo exports.
	ArchivePlatform = "mnemo"

	// activateBatch is the number of conversations activated per transaction.
	activateBatch = 100
)

// ErrAccountNotEmpty is returned for a Mnemo export that is imported into an
// account with content.
var ErrAccountNotEmpty error = fault.New(fault.Invalid, "a Mnemo export can only be restored into an empty account; "+
	"delete everything in this account first, or import the file as another user; nothing was imported")

// Restorer restores accounts from Mnemo exports. Files stores the conversations.
// All methods return ErrLeaseLost, and change nothing, if another worker has the
// import.
type Restorer interface {
	// Begin checks that the account is empty, creates its buckets, and returns
	// the progress, which is zero unless the restore was begun before;
	// ErrAccountNotEmpty.
	Begin(ctx context.Context, run Run, buckets []account.Bucket, conversations int) (Progress, error)
	// Memories stores a batch with its index jobs and returns the new progress.
	// Forbidden when a quota is exceeded.
	Memories(ctx context.Context, run Run, done Progress, batch []RestoredMemory) (Progress, error)
	// SetProgress records progress that stored nothing. ErrLeaseLost unless the
	// recorded progress is done.
	SetProgress(ctx context.Context, run Run, done, next Progress) error
	// Activate activates blocked conversations of the import, in the order given,
	// and reports whether quota is left.
	Activate(ctx context.Context, run Run, ids []string) (bool, error)
}

// Progress is the progress of a restore.
type Progress struct {
	Memories int    `json:"memories"` // processed so far, in the order of the file
	Skipped  int    `json:"skipped"`  // of Memories
	Reason   string `json:"reason"`   // why the first was skipped
}

// Skip returns the progress after one more memory was skipped.
func (p Progress) Skip(reason string) Progress {
	p.Memories++
	p.Skipped++
	if p.Skipped == 1 {
		p.Reason = reason
	}
	return p
}

// Warnings returns the warnings of a finished restore for end users.
func (p Progress) Warnings() []string {
	if p.Skipped == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Skipped %d of %d memories: %s.", p.Skipped, p.Memories, p.Reason)}
}

// RestoredMemory is a memory to restore.
type RestoredMemory struct {
	account.Memory
	Earlier []account.Version // oldest first
	Tokens  int
	Units   []retrieve.Unit // Owner and Group are set by the store
}

// RestoreConfig configures Restore. All fields are required.
type RestoreConfig struct {
	Files       Files
	Restorer    Restorer
	CountTokens func(text string) int
}

// Restore returns the Archive that restores accounts from Mnemo exports, with
// ids, times, versions and states. It can resume at any point.
func Restore(c RestoreConfig) Archive {
	return func(ctx context.Context, run Run, file io.ReaderAt) (bool, []string, error) {
		if run.RequestedPlatform != "" {
			return false, nil, nil
		}
		a, err := archive.Open(file, run.Size, archive.Limits{SkipInvalid: run.SkipInvalid})
		if errors.Is(err, archive.ErrOther) {
			return false, nil, nil
		}
		if err != nil {
			return true, nil, err
		}
		r := restore{RestoreConfig: c, run: run, from: a}
		warnings, err := r.all(ctx)
		if n := len(a.Invalid); n > 0 {
			warnings = append(warnings, fmt.Sprintf("Skipped %d invalid lines, with what belongs to them: %s.", n, a.InvalidLines()))
		}
		return true, warnings, err
	}
}

// restore is the restore of one account.
type restore struct {
	RestoreConfig
	run  Run
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
	done, err := r.Restorer.Begin(ctx, r.run, buckets, r.from.Total)
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
	return done.Warnings(), nil
}

// memories stores the memories after those that are done.
func (r restore) memories(ctx context.Context, done Progress) (Progress, error) {
	var batch []RestoredMemory
	n, bytes := 0, 0
	store := func() error {
		if len(batch) == 0 {
			return nil
		}
		if r.run.turn.over(ctx) {
			return errTurnOver
		}
		var err error
		if done, err = r.storeMemories(ctx, done, batch); err != nil {
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
		batch = append(batch, RestoredMemory{
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

// storeMemories stores a batch. If it exceeds a quota, it stores the memories one
// by one and skips those that do not fit.
func (r restore) storeMemories(ctx context.Context, done Progress, batch []RestoredMemory) (Progress, error) {
	next, err := r.Restorer.Memories(ctx, r.run, done, batch)
	if !fault.Is(err, fault.Forbidden) {
		return next, err
	}
	if len(batch) == 1 {
		next = done.Skip(message(err))
		return next, r.Restorer.SetProgress(ctx, r.run, done, next)
	}
	for i := range batch {
		if done, err = r.storeMemories(ctx, done, batch[i:i+1]); err != nil {
			return done, err
		}
	}
	return done, nil
}

// conversations stores the conversations that have no ledger row.
func (r restore) conversations(ctx context.Context) error {
	ordinals, err := r.Files.Ledger(ctx, r.run)
	if err != nil {
		return err
	}
	done := isDone(ordinals, r.from.Total)
	b := batchBuilder{}
	store := func() error {
		if len(b.Entries) == 0 {
			return nil
		}
		if r.run.turn.over(ctx) {
			return errTurnOver
		}
		err := storeBatch(ctx, r.Files, r.run, b.Batch, r.CountTokens)
		b = batchBuilder{}
		return err
	}
	ordinal := -1
	for c, err := range r.from.Transcripts() {
		if err != nil {
			return err
		}
		if ordinal++; done(ordinal) {
			continue
		}
		b.add(restoredEntry(ordinal, c))
		if b.full() {
			if err := store(); err != nil {
				return err
			}
		}
	}
	return store()
}

func restoredEntry(ordinal int, c archive.Transcript) Entry {
	return Entry{
		Ordinal: ordinal, Name: c.ExternalID,
		Upsert: chat.Upsert{
			ExternalID: c.ExternalID, Platform: c.Platform, PlatformName: c.PlatformName, Title: c.Title,
			CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Messages: c.Messages,
		},
		Restored: &Restored{ID: c.ID, Excluded: c.Status == chat.Excluded, Pinned: c.Pinned},
	}
}

// activate activates the conversations that were active, newest first, before
// the re-balance gives the remaining quota to others.
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
		quotaLeft, err := r.Restorer.Activate(ctx, r.run, ids)
		if err != nil {
			return fmt.Errorf("restore states: %w", err)
		}
		if !quotaLeft {
			return nil
		}
	}
	return nil
}
