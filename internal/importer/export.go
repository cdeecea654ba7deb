package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

const (
	// batchEntries and batchBytes limit a batch: it is held in memory several
	// times over, and is repeated after a worker dies.
	batchEntries = 50
	batchBytes   = 1 << 20
	// writers is the number of batches that are stored concurrently: one is
	// prepared here while the database writes the other.
	writers = 2
)

// readExport stores the conversations of another platform's export.
func (r *Runner) readExport(ctx context.Context, run Run, f *file) ([]string, error) {
	export, err := chatexport.Open(f, run.Size, chatexport.Options{Platform: run.RequestedPlatform})
	if err := f.cause(err); err != nil {
		return nil, err
	}
	content := FileContent{Platform: export.Platform, Total: export.Total, Warnings: export.Warnings}
	if err := r.Files.SetContent(ctx, run, content); err != nil {
		return nil, err
	}
	ordinals, err := r.Files.Ledger(ctx, run)
	if err != nil {
		return nil, err
	}
	notes := &tally{notes: run.Notes}
	if err := r.store(ctx, run, export, isDone(ordinals, export.Total), notes); err != nil {
		return nil, err
	}
	return append(export.Warnings, notes.notes.Warnings()...), nil
}

// isDone returns a lookup of the ordinals below total.
func isDone(ordinals []int, total int) func(int) bool {
	done := make([]bool, total)
	for _, n := range ordinals {
		if n < total {
			done[n] = true
		}
	}
	return func(n int) bool { return done[n] }
}

// tally is the sum of the notes of concurrently stored batches.
type tally struct {
	mu    sync.Mutex
	notes chatexport.Notes
}

func (t *tally) add(n chatexport.Notes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes.Add(n)
}

// store stores all conversations that are not done.
func (r *Runner) store(ctx context.Context, run Run, export *chatexport.Export, done func(int) bool, notes *tally) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan Batch)
	for range writers {
		group.Go(func() error {
			for b := range batches {
				if err := storeBatch(ctx, r.Files, run, b, r.CountTokens); err != nil {
					return err
				}
				for _, e := range b.Entries {
					notes.add(e.Notes)
				}
			}
			return nil
		})
	}
	over := false
	group.Go(func() error {
		defer close(batches)
		err := sendBatches(ctx, run.turn, export, done, batches)
		if over = errors.Is(err, errTurnOver); over {
			return nil // the batches that were sent are stored
		}
		return err
	})
	if err := group.Wait(); err != nil || !over {
		return err
	}
	return errTurnOver
}

// sendBatches sends the conversations of an export in batches until the turn is over.
func sendBatches(ctx context.Context, turn *turn, export *chatexport.Export, done func(int) bool, to chan<- Batch) error {
	b := batchBuilder{}
	send := func() error {
		if len(b.Entries) == 0 {
			return nil
		}
		if turn.over(ctx) {
			return errTurnOver
		}
		select {
		case to <- b.Batch:
			b = batchBuilder{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for c, err := range export.Conversations(done) {
		problem, isProblem := errors.AsType[*chatexport.ConversationError](err)
		if err != nil && !isProblem {
			return err
		}
		e := newEntry(c, problem)
		if b.contains(e) {
			if err := send(); err != nil {
				return err
			}
		}
		b.add(e)
		if !b.full() {
			continue
		}
		if err := send(); err != nil {
			return err
		}
	}
	return send()
}

// batchBuilder collects entries until a batch is full.
type batchBuilder struct {
	Batch
	bytes int
}

func (b *batchBuilder) add(e Entry) {
	b.Entries = append(b.Entries, e)
	for _, m := range e.Upsert.Messages {
		b.bytes += len(m.Text)
	}
}

func (b *batchBuilder) full() bool { return len(b.Entries) >= batchEntries || b.bytes >= batchBytes }

// contains reports whether the batch stores the conversation of the entry.
func (b *batchBuilder) contains(e Entry) bool {
	return e.Outcome == "" && slices.ContainsFunc(b.Entries, func(other Entry) bool {
		return other.Outcome == "" && other.Upsert.Key() == e.Upsert.Key()
	})
}

// newEntry returns the entry of a conversation. problem is nil or the reason why
// it is not stored.
func newEntry(c chatexport.Conversation, problem *chatexport.ConversationError) Entry {
	e := Entry{Ordinal: c.Ordinal, Upsert: c.Upsert, Name: c.ExternalID, Notes: c.Notes}
	if problem != nil {
		e.Upsert = chat.Upsert{}
		e.Outcome, e.Reason = EntryFailed, problem.Reason
		if problem.Skipped {
			e.Outcome = EntrySkipped
		}
		e.Name = cmp.Or(problem.ID, fmt.Sprintf("conversation %d of %s", problem.Position, problem.File))
	}
	return e
}
