package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// bundle is a database with two users of one tenant and one of another tenant.
type bundle struct {
	importer.Store
	chats   postgres.Conversations
	imports postgres.Imports
	db      *postgres.DB
	owner   *pgxpool.Pool
	spec    tenant.Spec
	alice   tenant.Scope
	bob     tenant.Scope
	carol   tenant.Scope // of the other tenant
}

func setup(t *testing.T, change func(*tenant.Quota)) *bundle {
	t.Helper()
	d := postgrestest.Create(t)
	db := postgrestest.Open(t, d)
	owner, err := pgxpool.New(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	b := &bundle{Store: db.Imports(), chats: db.Conversations(), imports: db.Imports(), db: db, owner: owner, spec: tenanttest.NewSpec()}
	b.spec.Quota.Conversations, b.spec.Quota.Storage = 1e6, 1<<40
	if change != nil {
		change(&b.spec.Quota)
	}
	for i, spec := range []tenant.Spec{b.spec, tenanttest.NewSpec()} {
		got, err := db.Apply(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			b.carol = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
			continue
		}
		b.alice, b.bob = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}, tenant.Scope{Tenant: got.ID, User: got.Users[1].ID}
	}
	t.Cleanup(func() { b.checkCounters(t) })
	return b
}

// checkCounters compares all counters with the rows that they count.
func (b *bundle) checkCounters(t *testing.T) {
	t.Helper()
	const sql = `select format('usage %s', tenant_id), array[conversations, blocked, storage], array[
			(select count(*) from conversations c where c.tenant_id = u.tenant_id and status = 'active'),
			(select count(*) from conversations c where c.tenant_id = u.tenant_id and status = 'blocked'),
			(select coalesce(sum(octet_length(text)), 0) from messages m where m.tenant_id = u.tenant_id)
				+ (select coalesce(sum(octet_length(text)), 0) from memory_versions v where v.tenant_id = u.tenant_id)
				+ (select coalesce(sum(attribute_bytes), 0) from merged_memories g where g.tenant_id = u.tenant_id)
			+ (select coalesce(sum(attribute_bytes), 0) from memories a where a.tenant_id = u.tenant_id)]::bigint[] from usage u
		union all select format('user %s', id), array[conversations], array[
			(select count(*) from conversations c where c.tenant_id = u.tenant_id and c.user_id = u.id and status = 'active')] from users u
		union all select format('conversation %s', external_id), array[message_count, token_count, bytes],
			(select array[count(*), coalesce(sum(tokens), 0), coalesce(sum(octet_length(text)), 0)] from messages m
				where m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id) from conversations c
		union all select format('units of %s', external_id), array[0], (select array[count(*)] from units u
			where u.tenant_id = c.tenant_id and u.user_id = c.user_id and u.conversation_id = c.id and u.active <> (c.status = 'active')) from conversations c
		union all select format('import %s', id), array[imported, updated, skipped, unchanged, failed, indexed],
			(select array[count(*) filter (where outcome = 'imported'), count(*) filter (where outcome = 'updated'),
				count(*) filter (where outcome in ('skipped', 'unchanged')), count(*) filter (where outcome = 'unchanged'),
				count(*) filter (where outcome = 'failed'), count(*) filter (where indexed)] from import_ledger l where l.import_id = i.id) from imports i
		union all select 'chunks of finished imports', array[0], (select array[count(*)] from import_chunks k join imports i on i.id = k.import_id
			where i.status in ('done', 'failed'))
		union all select format('file of import %s', id), array[chunk_bytes], (select array[coalesce(sum(octet_length(data)), 0)]
			from import_chunks k where k.import_id = i.id) from imports i`
	rows, err := b.owner.Query(context.WithoutCancel(t.Context()), sql)
	if err != nil {
		t.Fatal(err)
	}
	type counter struct {
		Name           string
		Counters, Rows []int64
	}
	counters, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counter])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		if fmt.Sprint(c.Counters) != fmt.Sprint(c.Rows) {
			t.Errorf("counters of %s are %v, want %v", c.Name, c.Counters, c.Rows)
		}
	}
}

// conversation is a conversation of a test export.
type conversation struct {
	id       string
	at       time.Time
	messages []string
}

var monday = time.Date(2025, 3, 3, 9, 0, 0, 0, time.UTC)

// conversations returns n conversations, one per hour, the newest last.
func conversations(n int) []conversation {
	out := make([]conversation, n)
	for i := range out {
		out[i] = conversation{fmt.Sprintf("c-%d", i), monday.Add(time.Duration(i) * time.Hour),
			[]string{fmt.Sprintf("What is number %d of the harbour?", i), fmt.Sprintf("It is the lantern with the number %d.", i)}}
	}
	return out
}

// export returns an export in the format of Claude.
func export(t *testing.T, list []conversation) []byte {
	t.Helper()
	type object = map[string]any
	out := []object{}
	for _, c := range list {
		messages := []object{}
		for i, text := range c.messages {
			messages = append(messages, object{"uuid": fmt.Sprintf("%s-%d", c.id, i), "sender": []string{"human", "assistant"}[i%2],
				"created_at": c.at.Add(time.Duration(i) * time.Minute), "text": text, "content": []object{}})
		}
		out = append(out, object{"uuid": c.id, "name": "Title " + c.id, "created_at": c.at, "updated_at": c.at.Add(time.Minute), "chat_messages": messages})
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// upload uploads a file and returns the id of its import.
func (b *bundle) upload(t *testing.T, scope tenant.Scope, data []byte, platform string) string {
	t.Helper()
	return b.uploadWith(t, scope, data, importer.ImportOptions{Platform: platform})
}

func (b *bundle) uploadWith(t *testing.T, scope tenant.Scope, data []byte, o importer.ImportOptions) string {
	t.Helper()
	service := &importer.Service{Uploads: b.imports}
	u, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.ReadFrom(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	ids, err := service.FinishUploads(t.Context(), tenant.Identity{Scope: scope}, o, tenant.Request{}, u)
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// runner returns a Runner.
func (b *bundle) runner(change ...func(*importer.Config)) *importer.Runner {
	c := importer.Config{Leases: b.imports, Files: b.imports, CountTokens: func(text string) int { return len(strings.Fields(text)) }}
	for _, f := range change {
		f(&c)
	}
	return importer.New(c)
}

// run runs an import until it is finished.
func (b *bundle) run(t *testing.T, scope tenant.Scope, id string) importer.Import {
	t.Helper()
	again, err := b.runner().Run(t.Context(), args(scope, id))
	if err != nil || again != 0 {
		t.Fatalf("Run = %s, %v; want 0 and no error", again, err)
	}
	return b.get(t, scope, id)
}

func (b *bundle) get(t *testing.T, scope tenant.Scope, id string) importer.Import {
	t.Helper()
	i, err := b.GetImport(t.Context(), scope, id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// importFile uploads a file and imports it.
func (b *bundle) importFile(t *testing.T, scope tenant.Scope, data []byte) importer.Import {
	t.Helper()
	return b.run(t, scope, b.upload(t, scope, data, ""))
}

func args(scope tenant.Scope, id string) importer.Args {
	return importer.Args{Tenant: scope.Tenant, User: scope.User, Import: id}
}

// statuses returns the states of a user's conversations by their external ids.
func (b *bundle) statuses(t *testing.T, scope tenant.Scope) map[string]chat.Status {
	t.Helper()
	out := map[string]chat.Status{}
	for page := 0; ; page++ {
		list, total, err := b.chats.List(t.Context(), scope, chat.ConversationFilter{Offset: page * 100, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			out[c.ExternalID] = c.Status
		}
		if len(out) >= total {
			return out
		}
	}
}

// count returns the number of rows.
func (b *bundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.owner.QueryRow(t.Context(), "select count(*) from "+sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// all returns the same state for n conversations.
func all(n int, s chat.Status) map[string]chat.Status {
	out := map[string]chat.Status{}
	for i := range n {
		out[fmt.Sprintf("c-%d", i)] = s
	}
	return out
}

// with returns a copy of m with other states for some conversations.
func with(m map[string]chat.Status, s chat.Status, ids ...string) map[string]chat.Status {
	out := maps.Clone(m)
	for _, id := range ids {
		out[id] = s
	}
	return out
}
