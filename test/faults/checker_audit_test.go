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
	for _, name := range slices.Sorted(maps.Keys(c.accounts)) {
		a := c.accounts[name]
		for _, o := range a.memories {
			compareRecords(c, a, o, count, "memory.create", "memory.update", "memory.delete")
		}
		for _, o := range a.chats {
			compareRecords(c, a, o, count, "conversation.store", "conversation.update", "conversation.delete")
		}
	}
	return c.reportAll(ctx, unaudited, `select tenant_id::text, seq::text, 'the chain has a gap' from
		(select tenant_id, seq, prev, lag(seq, 1, 0::bigint) over w as before, lag(hash, 1, ''::bytea) over w as expected
			from audit_records window w as (partition by tenant_id order by seq)) r where seq <> before + 1 or prev <> expected`)
}

// compareRecords compares the number of an object's records with its acknowledged changes.
func compareRecords[S comparable](c *checker, a *account, o *object[S], count map[record]int64, verbs ...string) {
	if o.id == "" {
		return
	}
	for _, verb := range verbs {
		n := count[record{verb, o.id}]
		if n < o.acked[verb] || n > o.acked[verb]+o.unsure[verb] {
			c.violate(unaudited, a.String(), o.key, "%d records %s, want %d, or %d more", n, verb, o.acked[verb], o.unsure[verb])
		}
	}
}
