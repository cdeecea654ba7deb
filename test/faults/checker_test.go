package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// checker compares the history with the API, PostgreSQL and Milvus.
type checker struct {
	*stack
	*history
	accounts map[string]*account // by tenant and name
}

// sample checks, while the load runs, that no quota is exceeded and that counters equal
// the rows. Each check is one statement, so it sees one state of the database.
func (c *checker) sample(ctx context.Context, every time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		c.quotas(ctx)
		if n%10 == 0 {
			c.counters(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// quotas reports exceeded quotas. PostgreSQL may be unavailable.
func (c *checker) quotas(ctx context.Context) {
	rows, err := c.Owner.Query(ctx, `
		select t.name, array[greatest(u.memories, (select count(*) from memories m where m.tenant_id = t.id)), u.storage,
			greatest(u.conversations, (select count(*) from conversations c where c.tenant_id = t.id and c.status = 'active'))] as used,
			array[q.memories, q.storage, q.conversations] as hard
		from tenants t join usage u on u.tenant_id = t.id join quotas q on q.tenant_id = t.id
		union all select t.name || '/' || u.name, array[u.memories, u.conversations], array[q.user_memories, q.user_conversations]
		from tenants t join users u on u.tenant_id = t.id join quotas q on q.tenant_id = t.id`)
	if err != nil {
		return
	}
	type quota struct {
		Name       string
		Used, Hard []int64
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[quota])
	if err != nil {
		return
	}
	for _, q := range list {
		for i := range q.Used {
			if q.Used[i] > q.Hard[i] {
				c.violate(overQuota, q.Name, "", "used %v of %v", q.Used, q.Hard)
			}
		}
	}
}

func (c *checker) counters(ctx context.Context) {
	wrong, err := postgrestest.WrongCounters(ctx, c.Owner)
	if err != nil {
		return
	}
	for _, w := range wrong {
		c.violate(counter, "", "", "%s", w)
	}
}

// converge waits until jobs and imports have ended and both stores are equal. It returns
// how long that took, and reports what has not converged within the bound.
func (c *checker) converge(ctx context.Context, within time.Duration) time.Duration {
	begun := time.Now()
	for {
		found := slices.Concat(c.jobs(ctx), c.imports(ctx), c.vectors(ctx), c.partitions(ctx), c.tenants(ctx))
		if len(found) == 0 {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			for _, v := range found {
				c.violate(v.Kind, v.User, v.Key, "%s (after %s)", v.Text, within)
			}
			return time.Since(begun)
		}
		c.restartEnded()
		time.Sleep(200 * time.Millisecond) //nolint:forbidigo // between two comparisons
	}
}

// check compares the content of the stores with the history, after convergence.
func (c *checker) check(ctx context.Context) {
	c.quotas(ctx)
	c.counters(ctx)
	for _, check := range []func(context.Context) error{c.rows, c.versions, c.ledgers, c.purged, c.responses, c.audit} {
		if err := check(ctx); err != nil {
			c.violate(unexpected, "", "", "%v", err)
		}
	}
}

// row is a memory or conversation in PostgreSQL.
type row[S comparable] struct {
	Account, ID, Key, Owner string
	State                   S
}

// rows compares PostgreSQL with the models.
func (c *checker) rows(ctx context.Context) error {
	memories, err := c.memoryRows(ctx)
	if err != nil {
		return err
	}
	chats, err := c.chatRows(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.accounts)) {
		a := c.accounts[name]
		found := compareRows(c, a, a.memories, memories[name])
		compareRows(c, a, a.chats, chats[name])
		for _, g := range a.groups {
			c.checkGroup(a, g, found)
		}
		delete(memories, name)
		delete(chats, name)
	}
	for name := range memories {
		c.violate(reappeared, name, "", "memories of an account that does not exist")
	}
	for name := range chats {
		c.violate(reappeared, name, "", "conversations of an account that does not exist")
	}
	return nil
}

// compareRows compares the rows of an account with its model and returns their states.
func compareRows[S comparable](c *checker, a *account, model map[string]*object[S], rows []row[S]) map[string]S {
	found := map[string]S{}
	for _, r := range rows {
		if r.Owner != a.owner {
			c.violate(foreign, a.String(), r.Key, "has a row of %s", r.Owner)
			continue
		}
		if _, twice := found[r.Key]; twice {
			c.violate(partial, a.String(), r.Key, "is stored twice")
		}
		found[r.Key] = r.State
		if model[r.Key] == nil {
			c.violate(reappeared, a.String(), r.Key, "was never stored, found %+v", r.State)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(model)) {
		if kind, text := compare(model[key], found[key]); kind != "" {
			c.violate(kind, a.String(), key, "PostgreSQL: %s", text)
		}
	}
	return found
}

// checkGroup reports an operation that happened for some objects only.
func (c *checker) checkGroup(a *account, g group, found map[string]memoryState) {
	happened := 0
	for _, key := range g.keys {
		if g.happened(found[key]) {
			happened++
		}
	}
	if happened > 0 && happened < len(g.keys) {
		c.violate(partial, a.String(), g.keys[0], "%s of %v happened for %d of them", g.what, g.keys, happened)
	}
}

// allMemories are the memories and the merged ones, whose bucket may be deleted.
const allMemories = `(select tenant_id, user_id, id, bucket_id, text, version, '' as merged_into from memories
	union all select tenant_id, user_id, id, bucket_id, text, version, merged_into::text from merged_memories)`

func (c *checker) memoryRows(ctx context.Context) (map[string][]row[memoryState], error) {
	list, err := c.Owner.Query(ctx, `select t.name, u.name, m.id::text, m.text, m.version::bigint,
			case when b.is_default then '' else coalesce(b.name, '') end, m.merged_into
		from `+allMemories+` m join tenants t on t.id = m.tenant_id join users u on u.tenant_id = m.tenant_id and u.id = m.user_id
		left join buckets b on b.tenant_id = m.tenant_id and b.user_id = m.user_id and b.id = m.bucket_id`)
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	out := map[string][]row[memoryState]{}
	var tenant, user string
	var r row[memoryState]
	_, err = pgx.ForEachRow(list, []any{&tenant, &user, &r.ID, &r.State.Text, &r.State.Version, &r.State.Bucket, &r.State.Merged}, func() error {
		r.Account = tenant + "/" + user
		words := append(strings.Fields(r.State.Text), "", "")
		r.Key, r.Owner = words[0], words[1]
		out[r.Account] = append(out[r.Account], r)
		return nil
	})
	return out, err
}

func (c *checker) chatRows(ctx context.Context) (map[string][]row[chatState], error) {
	list, err := c.Owner.Query(ctx, `select t.name, u.name, c.id::text, c.title, c.status, array(select m.text from messages m
			where m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id order by m.seq)
		from conversations c join tenants t on t.id = c.tenant_id join users u on u.tenant_id = c.tenant_id and u.id = c.user_id`)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	out := map[string][]row[chatState]{}
	var tenant, user, id, title, status string
	var messages []string
	_, err = pgx.ForEachRow(list, []any{&tenant, &user, &id, &title, &status, &messages}, func() error {
		words := append(strings.Fields(strings.Join(messages, " ")), "", "")
		r := row[chatState]{Account: tenant + "/" + user, ID: id, Key: words[0], Owner: words[1],
			State: chatState{Title: title, Messages: strings.Join(messages, "\n"), Excluded: status == "excluded"}}
		out[r.Account] = append(out[r.Account], r)
		return nil
	})
	return out, err
}

// find returns the violations that a query finds: user, object and text.
func (c *checker) find(ctx context.Context, kind, query string, args ...any) ([]violation, error) {
	rows, err := c.Owner.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var out []violation
	v := violation{Kind: kind}
	_, err = pgx.ForEachRow(rows, []any{&v.User, &v.Key, &v.Text}, func() error {
		out = append(out, v)
		return nil
	})
	return out, err
}

// reportAll records the violations that a query finds.
func (c *checker) reportAll(ctx context.Context, kind, query string) error {
	found, err := c.find(ctx, kind, query)
	for _, v := range found {
		c.violate(v.Kind, v.User, v.Key, "%s", v.Text)
	}
	return err
}

// versions: a memory has all its versions, and the newest is its text.
func (c *checker) versions(ctx context.Context) error {
	return c.reportAll(ctx, lost, `
		select t.name || '/' || u.name, split_part(m.text, ' ', 1), format('version %s has %s versions', m.version, count(v.version))
		from `+allMemories+` m join tenants t on t.id = m.tenant_id join users u on u.tenant_id = m.tenant_id and u.id = m.user_id
		left join memory_versions v on v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id
		group by t.name, u.name, m.text, m.version
		having count(v.version) <> m.version or not bool_or(v.version = m.version and v.text = m.text)`)
}

// ledgers: an import accounts for each conversation of its file.
func (c *checker) ledgers(ctx context.Context) error {
	return c.reportAll(ctx, ledger, `
		select t.name || '/' || u.name, i.id::text, format('%s: total %s, imported %s, updated %s, skipped %s, failed %s, ledger %s %s',
			i.status, i.total, i.imported, i.updated, i.skipped, i.failed, l.counts, i.failure)
		from imports i join tenants t on t.id = i.tenant_id join users u on u.tenant_id = i.tenant_id and u.id = i.user_id,
		lateral (select array[count(*), count(*) filter (where outcome = 'imported'), count(*) filter (where outcome = 'updated'),
				count(*) filter (where outcome in ('skipped', 'unchanged')), count(*) filter (where outcome = 'failed')] as counts
			from import_ledger x where x.tenant_id = i.tenant_id and x.user_id = i.user_id and x.import_id = i.id) l
		where i.kind = 'file' and i.status in ('done', 'failed')
			and (i.status = 'failed' or i.total <> i.imported + i.updated + i.skipped + i.failed
				or array[i.total, i.imported, i.updated, i.skipped, i.failed] <> l.counts)`)
}

// responses compares what the API shows with PostgreSQL.
func (c *checker) responses(ctx context.Context) error {
	memories, err := c.memoryRows(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.accounts)) {
		a := c.accounts[name]
		want := map[string]string{}
		for _, r := range memories[name] {
			if r.State.Merged == "" {
				want[r.ID] = r.State.Text
			}
		}
		got, err := a.list(ctx)
		if err != nil {
			return fmt.Errorf("list memories of %s: %w", a, err)
		}
		for id, text := range got {
			if want[id] != text {
				c.violate(cmp.Or(map[bool]string{true: foreign}[!strings.Contains(text, a.owner)], reappeared), name, id, "the API lists %q", text)
			}
		}
		for id, text := range want {
			if got[id] != text {
				c.violate(lost, name, id, "the API does not list %q", text)
			}
		}
	}
	return nil
}
