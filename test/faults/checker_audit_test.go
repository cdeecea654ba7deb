package faults_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// record is a verb of the audit log with an object.
type record struct{ verb, object string }

// audit: every acknowledged change has exactly one audit record, one of unknown outcome
// at most one, and the chain of each tenant is complete.
func (c *checker) audit(ctx context.Context) error {
	rows, err := c.Owner.Query(ctx, `select verb, object, count(*) from
		(select verb, unnest(objects) as object from audit_records union all select verb, unnest(objects) from audit_pending) r group by 1, 2`)
	if err != nil {
		return fmt.Errorf("read audit records: %w", err)
	}
	count, r, n := map[record]int64{}, record{}, int64(0)
	_, err = pgx.ForEachRow(rows, []any{&r.verb, &r.object, &n}, func() error {
		count[r] = n
		return nil
	})
	if err != nil {
		return fmt.Errorf("read audit records: %w", err)
	}
	// Restores give objects of several users the same id.
	acked, unsure := map[record]int64{}, map[record]int64{}
	for _, a := range c.accounts {
		addRecords(a.memories, acked, unsure)
		addRecords(a.chats, acked, unsure)
	}
	for _, name := range slices.Sorted(maps.Keys(c.accounts)) {
		a := c.accounts[name]
		for _, o := range a.memories {
			c.compareRecords(a, o.id, o.key, count, acked, unsure, "memory.create", "memory.update", "memory.delete",
				"memory.merge", "memory.unmerge", "memory.restore")
		}
		for _, o := range a.chats {
			c.compareRecords(a, o.id, o.key, count, acked, unsure, "conversation.store", "conversation.update", "conversation.delete")
		}
	}
	return c.reportAll(ctx, unaudited, `select tenant_id::text, seq::text, 'the chain has a gap' from
		(select tenant_id, seq, prev, lag(seq, 1, 0::bigint) over w as before, lag(hash, 1, ''::bytea) over w as expected
			from audit_records window w as (partition by tenant_id order by seq)) r where seq <> before + 1 or prev <> expected`)
}

// addRecords adds the changes of objects.
func addRecords[S comparable](objects map[string]*object[S], acked, unsure map[record]int64) {
	for _, o := range objects {
		for verb, n := range o.acked {
			acked[record{verb, o.id}] += n
		}
		for verb, n := range o.unsure {
			unsure[record{verb, o.id}] += n
		}
	}
}

// compareRecords compares the number of an object's records with the changes.
func (c *checker) compareRecords(a *account, id, key string, count, acked, unsure map[record]int64, verbs ...string) {
	if id == "" {
		return
	}
	for _, verb := range verbs {
		r := record{verb, id}
		if n := count[r]; n < acked[r] || n > acked[r]+unsure[r] {
			c.violate(unaudited, a.String(), key, "%d records %s, want %d, or %d more", n, verb, acked[r], unsure[r])
			count[r] = acked[r] // other users with the id have the same records
		}
	}
}
