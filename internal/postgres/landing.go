package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// readBytes is how much text of stored conversations is read at once.
const readBytes = 4 << 20

// errRaced is a batch that lost a new conversation to somebody who made it at
// the same time.
var errRaced = errors.New("a conversation of the batch was made meanwhile")

// Land implements chat.ImportFiles. When a batch does not fit the storage, its
// conversations are stored one by one: the smaller ones may.
func (c Conversations) Land(ctx context.Context, run chat.ImportRun, b chat.Batch, t chat.Tools) error {
	err := c.land(ctx, run, b, t)
	if !fault.Is(err, fault.Forbidden) {
		return err
	}
	if len(b.Entries) == 1 {
		e := b.Entries[0]
		e.Outcome, e.Reason = chat.EntryFailed, messageOf(err)
		b.Entries = []chat.Entry{e}
		return c.land(ctx, run, b, t)
	}
	for i, e := range b.Entries {
		one := chat.Batch{Entries: []chat.Entry{e}, AddNotes: func(before []byte) ([]byte, error) { return before, nil }}
		if i == 0 {
			one.AddNotes = b.AddNotes
		}
		if err := c.Land(ctx, run, one, t); err != nil {
			return err
		}
	}
	return nil
}

func messageOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return err.Error()
}

func (c Conversations) land(ctx context.Context, run chat.ImportRun, b chat.Batch, t chat.Tools) error {
	for range attempts {
		// What is surely new is made ready outside the transaction.
		ready, err := c.ready(ctx, run, b, t)
		if err != nil {
			return err
		}
		err = c.DB.inScope(ctx, run.Scope, func(tx pgx.Tx, q *db.Queries) error {
			l := landing{db: c.DB, tx: tx, q: q, run: run, tools: t, batch: b, ready: ready, results: make([]landed, len(b.Entries))}
			return l.all(ctx)
		})
		if errors.Is(err, errRaced) {
			continue
		}
		if err != nil {
			return fmt.Errorf("store batch: %w", err)
		}
		return nil
	}
	return fault.New(fault.Unavailable, "conversations are being changed by somebody else all the time; it will be tried again")
}

// incoming is a new conversation as it is stored.
type incoming struct {
	stored
	messages []chat.Message
}

// prepare makes an incoming conversation of an entry.
func prepare(e chat.Entry, run chat.ImportRun, t chat.Tools) (incoming, error) {
	u := dated(e.Upsert, run.StartedAt)
	m := merge(nil, u.Messages)
	for i := range m.all {
		m.all[i].Tokens = t.CountTokens(m.all[i].Text)
	}
	c, err := describe(stored{}, u, m.all)
	if was := e.Restored; was != nil {
		c.ID, c.Pinned = was.ID, was.Pinned
		if was.Excluded {
			c.Status = chat.Excluded
		}
	}
	return incoming{stored: c, messages: m.all}, err
}

// dated returns the upsert with the time in the place of those that the file
// does not know.
func dated(u chat.Upsert, at time.Time) chat.Upsert {
	if u.CreatedAt.IsZero() {
		u.CreatedAt = at
	}
	messages := make([]chat.Message, len(u.Messages))
	for i, m := range u.Messages {
		if m.CreatedAt.IsZero() {
			m.CreatedAt = at
		}
		messages[i] = m
	}
	u.Messages = messages
	return u
}

// ready prepares the entries that are not stored yet, by their index.
func (c Conversations) ready(ctx context.Context, run chat.ImportRun, b chat.Batch, t chat.Tools) (map[int]incoming, error) {
	p, at := keysOf(run, b)
	var known []int32
	err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		known, err = q.KnownConversations(ctx, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for conversations: %w", err)
	}
	isKnown := make(map[int]bool, len(known))
	for _, n := range known {
		isKnown[at[n-1]] = true
	}
	out := make(map[int]incoming, len(at))
	for _, i := range at {
		if isKnown[i] {
			continue
		}
		if out[i], err = prepare(b.Entries[i], run, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keysOf returns what names the conversations of a batch, and of each key the
// index of its entry.
func keysOf(run chat.ImportRun, b chat.Batch) (db.KnownConversationsParams, []int) {
	p := db.KnownConversationsParams{TenantID: string(run.Tenant), UserID: int64(run.User)}
	var at []int
	for i, e := range b.Entries {
		if e.Outcome == "" {
			p.Platforms, p.ExternalIds = append(p.Platforms, e.Upsert.Platform), append(p.ExternalIds, e.Upsert.ExternalID)
			at = append(at, i)
		}
	}
	return p, at
}

// landing is a batch being stored in a transaction. Unlike other writers it
// takes the lock of the usage row last: its transactions are long, and those
// of people would wait for them. Should it meet one of them over the same
// conversation, the database lets one of the two try again.
type landing struct {
	db    *DB
	tx    pgx.Tx
	q     *db.Queries
	run   chat.ImportRun
	tools chat.Tools
	batch chat.Batch
	ready map[int]incoming

	results []landed
	storage int64 // bytes gained
	blocked int64 // new conversations
	units   []retrieve.UnitID
}

// landed is what became of an entry.
type landed struct {
	outcome      chat.EntryOutcome
	conversation string // "" when nothing of it is stored
}

func (l *landing) all(ctx context.Context) error {
	before, err := l.lock(ctx)
	if err != nil {
		return err
	}
	var messages map[string][]chat.Message // of the next conversations that are stored
	var fresh []incoming
	for i, e := range l.batch.Entries {
		if e.Outcome != "" {
			l.results[i] = landed{outcome: e.Outcome}
			continue
		}
		if old, ok := before[keyOf(e.Upsert)]; ok {
			if _, read := messages[old.ID]; !read {
				if messages, err = l.read(ctx, i, before); err != nil {
					return err
				}
			}
			if err := l.update(ctx, i, old, messages[old.ID]); err != nil {
				return fmt.Errorf("update conversation: %w", err)
			}
			continue
		}
		in, ok := l.ready[i]
		if !ok { // it was there a moment ago
			if in, err = prepare(e, l.run, l.tools); err != nil {
				return err
			}
		}
		l.results[i] = landed{chat.EntryImported, in.ID}
		l.storage += in.bytes
		fresh = append(fresh, in)
	}
	if err := l.fits(ctx); err != nil {
		return err
	}
	if err := l.insert(ctx, fresh); err != nil {
		return err
	}
	return l.account(ctx)
}

// key names a conversation.
type key struct{ platform, externalID string }

func keyOf(u chat.Upsert) key { return key{u.Platform, u.ExternalID} }

// lock returns the conversations of the batch that are stored, locked.
func (l *landing) lock(ctx context.Context) (map[key]stored, error) {
	p, at := keysOf(l.run, l.batch)
	if len(at) == 0 {
		return nil, nil
	}
	rows, err := l.q.LockConversations(ctx, db.LockConversationsParams(p))
	if err != nil {
		return nil, fmt.Errorf("lock conversations: %w", err)
	}
	out := make(map[key]stored, len(rows))
	for _, r := range rows {
		out[key{r.Platform, r.ExternalID}] = stored{toConversation(r), r.Bytes}
	}
	return out, nil
}

// read returns the messages, in order, of those of the entries from one on that
// are stored, by the conversations' ids: of as many as may be held at once.
func (l *landing) read(ctx context.Context, from int, before map[key]stored) (map[string][]chat.Message, error) {
	p := db.MessagesOfParams{TenantID: string(l.run.Tenant), UserID: int64(l.run.User)}
	var bytes int64
	for _, e := range l.batch.Entries[from:] {
		old, ok := before[keyOf(e.Upsert)]
		if !ok || e.Outcome != "" {
			continue
		}
		if bytes += old.bytes; bytes > readBytes && len(p.Ids) > 0 {
			break
		}
		p.Ids = append(p.Ids, old.ID)
	}
	rows, err := l.q.MessagesOf(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	out := make(map[string][]chat.Message, len(p.Ids))
	for _, r := range rows {
		out[r.Conversation] = append(out[r.Conversation], toMessage(db.ListMessagesRow{
			Seq: r.Seq, ExternalID: r.ExternalID, Sender: r.Sender, Text: r.Text, Tokens: r.Tokens, CreatedAt: r.CreatedAt,
		}))
	}
	return out, nil
}

// update adds what is new of an entry to the conversation that is stored.
func (l *landing) update(ctx context.Context, i int, before stored, messages []chat.Message) error {
	u := dated(l.batch.Entries[i].Upsert, before.CreatedAt)
	m := merge(messages, u.Messages)
	for _, list := range [][]int{m.added, m.replaced} {
		for _, n := range list {
			m.all[n].Tokens = l.tools.CountTokens(m.all[n].Text)
		}
	}
	after, err := describe(before, u, m.all)
	if err != nil {
		return err
	}
	if same(before, after) && len(m.added)+len(m.replaced) == 0 {
		l.results[i] = landed{chat.EntryUnchanged, before.ID}
		return nil
	}
	l.results[i] = landed{chat.EntryUpdated, before.ID}
	l.storage += after.bytes - before.bytes
	x := upsert{db: l.db, tx: l.tx, q: l.q, scope: l.run.Scope, in: u, build: l.tools.Build}
	if err := x.writeConversation(ctx, l.run.ID, false, after); err != nil {
		return err
	}
	if err := writeMessages(ctx, l.q, l.run.Scope, after.ID, m); err != nil {
		return err
	}
	units, err := x.writeUnits(ctx, false, after, m)
	l.units = append(l.units, units...)
	return err
}

// fits refuses at once what the storage quota will surely refuse in the end.
func (l *landing) fits(ctx context.Context) error {
	if l.storage <= 0 {
		return nil
	}
	left, err := l.q.StorageLeft(ctx, string(l.run.Tenant))
	if err != nil {
		return orUnknown(err, l.run.Tenant)
	}
	if l.storage > left.LeftOver {
		return storageUsedUp(left.Hard, left.Used)
	}
	return nil
}

// account writes the ledger and, last, the rows that others wait for.
func (l *landing) account(ctx context.Context) error {
	if err := l.db.insertSync(ctx, l.tx, l.run.Tenant, l.units); err != nil {
		return err
	}
	if err := l.ledger(ctx); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := reserve(ctx, l.q, l.run.Scope, 0, l.storage); err != nil {
		return err
	}
	if l.blocked == 0 {
		return nil
	}
	return l.q.AddConversationUsage(ctx, db.AddConversationUsageParams{TenantID: string(l.run.Tenant), Blocked: l.blocked})
}

// ledger writes a row for each entry and adds them to the import, which tells
// whether it is still the worker's.
func (l *landing) ledger(ctx context.Context) error {
	rows := db.InsertLedgerParams{TenantID: string(l.run.Tenant), UserID: int64(l.run.User), ImportID: l.run.ID}
	sum := db.AddToImportParams{TenantID: rows.TenantID, UserID: rows.UserID, ID: l.run.ID, Lease: seconds(landLease)}
	failures := []chat.ImportError{}
	for i, e := range l.batch.Entries {
		r := l.results[i]
		rows.Ordinals = append(rows.Ordinals, int32(e.Ordinal))
		rows.Outcomes = append(rows.Outcomes, string(r.outcome))
		rows.ConversationIds = append(rows.ConversationIds, r.conversation)
		rows.Reasons = append(rows.Reasons, e.Reason)
		switch r.outcome {
		case chat.EntryImported:
			sum.Imported++
		case chat.EntryUpdated:
			sum.Updated++
		case chat.EntryUnchanged:
			sum.Unchanged++
			sum.Skipped++
		case chat.EntrySkipped:
			sum.Skipped++
		case chat.EntryFailed:
			sum.Failed++
			failures = append(failures, chat.ImportError{Conversation: e.Name, Error: e.Reason})
		}
	}
	sum.Indexed = sum.Skipped + sum.Failed
	var err error
	if sum.Errors, err = json.Marshal(failures); err != nil {
		return err
	}
	if err := l.q.InsertLedger(ctx, rows); err != nil {
		return err
	}
	notes, err := l.q.LockRunningImport(ctx, db.LockRunningImportParams{
		TenantID: rows.TenantID, UserID: rows.UserID, ID: l.run.ID, Worker: &l.run.Worker,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return chat.ErrLost
	}
	if err != nil {
		return err
	}
	if sum.Notes, err = l.batch.AddNotes(notes); err != nil {
		return err
	}
	return l.q.AddToImport(ctx, sum)
}
