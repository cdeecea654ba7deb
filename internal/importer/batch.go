package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// EntryOutcome is the result of importing one conversation.
type EntryOutcome string

// The outcomes, as stored in the ledger.
const (
	EntryImported  EntryOutcome = "imported"
	EntryUpdated   EntryOutcome = "updated"
	EntryUnchanged EntryOutcome = "unchanged"
	EntrySkipped   EntryOutcome = "skipped"
	EntryFailed    EntryOutcome = "failed"
)

// Entry is one conversation of a file.
type Entry struct {
	Ordinal int
	// Name identifies the conversation in errors.
	Name string
	// Outcome is EntrySkipped or EntryFailed, with a Reason, or "" to store the
	// Upsert.
	Outcome EntryOutcome
	Reason  string
	Upsert  chat.Upsert
	// TokensCounted reports that the Upsert's messages have token counts.
	TokensCounted bool
	// Restored is the identity of a restored conversation; nil for others.
	Restored *Restored
	// Notes are what the parser omitted from the conversation. They are stored
	// with its ledger row, so that an interrupted import counts them once.
	Notes chatexport.Notes
}

// Restored is the identity and state of a conversation before it is restored.
type Restored struct {
	ID       string // unique per user
	Excluded bool
	Pinned   bool
}

// Plan returns the change that the entry makes to the stored conversation.
// before.ID is "" if there is none; the conversation then gets newID. Times that
// the file lacks are those of the conversation, or the start of the import.
func (e Entry) Plan(before chat.Conversation, stored []chat.Message, newID string, started time.Time) chat.Change {
	u := e.Upsert.WithDefaultTimes(started)
	if before.ID != "" {
		u = e.Upsert.WithDefaultTimes(before.CreatedAt)
	}
	if e.Restored == nil {
		return chat.PlanExport(before, stored, u, newID)
	}
	if before.ID != "" {
		return chat.Plan(before, stored, u, newID)
	}
	c := chat.Plan(before, nil, u, e.Restored.ID)
	c.After.Pinned = e.Restored.Pinned
	if e.Restored.Excluded {
		c.After.Status = chat.Excluded
	}
	return c
}

// Batch is a set of entries that are stored together. It stores each conversation once:
// each entry is compared with the state before the batch.
type Batch struct {
	Entries []Entry
}

// Result is the result of importing an entry: a row of the ledger.
type Result struct {
	Ordinal      int
	Name         string
	Outcome      EntryOutcome
	Conversation string // its id; "" if nothing is stored
	Reason       string
	Notes        chatexport.Notes
}

// ResultOf returns the result of storing a change.
func ResultOf(e Entry, c chat.Change) Result {
	outcome := EntryUnchanged
	switch {
	case c.Created():
		outcome = EntryImported
	case c.Changed():
		outcome = EntryUpdated
	}
	return Result{Ordinal: e.Ordinal, Name: e.Name, Outcome: outcome, Conversation: c.After.ID, Notes: e.Notes}
}

// Rejected returns the result of an entry that is not stored.
func Rejected(e Entry) Result {
	return Result{Ordinal: e.Ordinal, Name: e.Name, Outcome: e.Outcome, Reason: e.Reason, Notes: e.Notes}
}

// Counts are the sums over results that an import reports.
type Counts struct {
	Imported  int64
	Updated   int64
	Skipped   int64 // including Unchanged
	Unchanged int64
	Failed    int64
	Indexed   int64 // entries that will never need indexing
	Errors    []EntryError
	Notes     chatexport.Notes
}

// Count returns the sums over results.
func Count(results []Result) Counts {
	c := Counts{Errors: []EntryError{}}
	for _, r := range results {
		c.Notes.Add(r.Notes)
		switch r.Outcome {
		case EntryImported:
			c.Imported++
		case EntryUpdated:
			c.Updated++
		case EntryUnchanged:
			c.Unchanged++
			c.Skipped++
		case EntrySkipped:
			c.Skipped++
		case EntryFailed:
			c.Failed++
			c.Errors = append(c.Errors, EntryError{Conversation: r.Name, Error: r.Reason})
		}
	}
	c.Indexed = c.Skipped + c.Failed
	return c
}

// storeBatch stores a batch. Tokens are counted only for conversations that
// change: most of a file that is imported again is unchanged, and counting takes
// longer than everything else.
func storeBatch(ctx context.Context, files Files, run Run, b Batch, countTokens func(string) int) error {
	uncounted, err := storeFitting(ctx, files, run, b)
	if err != nil || len(uncounted.Entries) == 0 {
		return err
	}
	for i := range uncounted.Entries {
		e := &uncounted.Entries[i]
		for j := range e.Upsert.Messages {
			m := &e.Upsert.Messages[j]
			m.Tokens = countTokens(m.Text)
		}
		e.TokensCounted = true
	}
	_, err = storeFitting(ctx, files, run, uncounted)
	return err
}

// storeFitting stores a batch. If the batch exceeds the storage quota, it stores
// the entries one by one: smaller ones may fit, and the others fail.
func storeFitting(ctx context.Context, files Files, run Run, b Batch) (uncounted Batch, err error) {
	uncounted, err = files.StoreBatch(ctx, run, b)
	if !fault.Is(err, fault.Forbidden) {
		return uncounted, err
	}
	if len(b.Entries) == 1 {
		e := b.Entries[0]
		e.Outcome, e.Reason = EntryFailed, message(err)
		return files.StoreBatch(ctx, run, Batch{Entries: []Entry{e}})
	}
	for _, e := range b.Entries {
		one, err := storeFitting(ctx, files, run, Batch{Entries: []Entry{e}})
		if err != nil {
			return Batch{}, err
		}
		uncounted.Entries = append(uncounted.Entries, one.Entries...)
	}
	return uncounted, nil
}

// message returns the part of an error that is meant for end users.
func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return ""
}

// AddNotes adds notes to those stored with an import, which are JSON.
func AddNotes(stored []byte, n chatexport.Notes) ([]byte, error) {
	var sum chatexport.Notes
	if err := json.Unmarshal(stored, &sum); err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	sum.Add(n)
	return json.Marshal(sum)
}

// Status returns the status of a finished import of one entry.
func (c Counts) Status() Status {
	if c.Failed > 0 {
		return Failed
	}
	return Done
}
