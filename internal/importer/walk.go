package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

const (
	// batchEntries and batchBytes bound what is stored at once: it is held in
	// memory several times over, and is done again when a worker dies.
	batchEntries = 50
	batchBytes   = 1 << 20
	// landers is how many batches are stored at the same time: one is made ready
	// here while the database is at the other.
	landers = 2
)

// readExport stores what an export of another platform holds.
func (r *Runner) readExport(ctx context.Context, run chat.ImportRun, f *file) ([]string, error) {
	export, err := chatexport.Open(f, run.Size, chatexport.Options{Platform: run.Asked})
	if err := f.cause(err); err != nil {
		return nil, err
	}
	content := chat.FileContent{Platform: export.Platform, Total: export.Total, Warnings: export.Warnings}
	if err := r.Files.Describe(ctx, run, content); err != nil {
		return nil, err
	}
	done, err := r.Files.Ledger(ctx, run)
	if err != nil {
		return nil, err
	}
	before, err := readNotes(run.Notes)
	if err != nil {
		return nil, err
	}
	notes := &tally{n: before}
	if err := r.store(ctx, run, export, doneAt(done, export.Total), notes); err != nil {
		return nil, err
	}
	return append(export.Warnings, notes.sentences()...), nil
}

// doneAt says which ordinals are done.
func doneAt(ordinals []int, total int) func(int) bool {
	done := make([]bool, total)
	for _, n := range ordinals {
		if n < total {
			done[n] = true
		}
	}
	return func(n int) bool { return done[n] }
}

// store has all conversations stored that are not.
func (r *Runner) store(ctx context.Context, run chat.ImportRun, export *chatexport.Export, done func(int) bool, notes *tally) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch)
	tools := chat.Tools{CountTokens: r.CountTokens, Build: chat.Units}
	for range landers {
		group.Go(func() error {
			for b := range batches {
				if err := r.Files.Land(ctx, run, chat.Batch{Entries: b.entries, AddNotes: addTo(b.notes)}, tools); err != nil {
					return err
				}
				notes.add(b.notes)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(batches)
		return collect(ctx, export, done, batches)
	})
	return group.Wait()
}

// batch is conversations on their way into the store.
type batch struct {
	entries []chat.Entry
	bytes   int
	notes   chatexport.Notes
}

// collect gives the conversations of an export in batches.
func collect(ctx context.Context, export *chatexport.Export, done func(int) bool, to chan<- *batch) error {
	send := func(b *batch) error {
		select {
		case to <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b := &batch{}
	for c, err := range export.Conversations(done) {
		problem, isProblem := errors.AsType[*chatexport.ConversationError](err)
		if err != nil && !isProblem {
			return err
		}
		b.add(c, problem)
		if len(b.entries) < batchEntries && b.bytes < batchBytes {
			continue
		}
		if err := send(b); err != nil {
			return err
		}
		b = &batch{}
	}
	if len(b.entries) == 0 {
		return nil
	}
	return send(b)
}

// add adds a conversation, or what stands in for it.
func (b *batch) add(c chatexport.Conversation, problem *chatexport.ConversationError) {
	e := chat.Entry{Ordinal: c.Ordinal, Upsert: c.Upsert, Name: c.ExternalID}
	if problem != nil {
		e.Upsert = chat.Upsert{}
		e.Outcome, e.Reason = chat.EntryFailed, problem.Reason
		if problem.Skipped {
			e.Outcome = chat.EntrySkipped
		}
		e.Name = cmp.Or(problem.ID, fmt.Sprintf("conversation %d of %s", problem.Place, problem.File))
	}
	b.entries = append(b.entries, e)
	for _, m := range c.Messages {
		b.bytes += len(m.Text)
	}
	b.notes.Add(c.Notes)
}
