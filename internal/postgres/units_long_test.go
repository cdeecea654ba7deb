package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The units of a long message are read without the message: a search read 31 MiB for each of its candidates. The other readers of units
// are those of index jobs and of passages.
func TestUnitsOfLongMessageAreReadWithoutIt(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	scope := b.users[0]
	c := newConversation("a", 0, 3)
	c.Messages[0].Text = "first " + longText(t)
	out := b.upsert(t, scope, c)
	ids := b.unitsOf(t, out.Conversation.ID)
	if len(ids) < 100 {
		t.Fatalf("the conversation has %d units, want at least 100", len(ids))
	}
	ids = ids[:100]
	conn := session(t, d, scope)
	args := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "DescribeUnits", "tenant_id", "user_id", "ids", "group_id"))
	exec(t, conn, "prepare loaded (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LoadUnits", "tenant_id", "ids"))
	exec(t, conn, "prepare passages (uuid, bigint, uuid[], int[], int[], int[], bigint[], int, int, bigint) as "+strings.ReplaceAll(
		namedQuery(t, "messages.sql", "Passages", "tenant_id", "user_id", "ids", "seqs", "starts", "ends", "units", "around", "most", "bytes"), "sqlc.embed(c)", "c.*"))
	for name, tc := range map[string]struct {
		statement string
		most      int64 // blocks
	}{
		"Describe": {fmt.Sprintf("execute described ('%s', %d, '{%s}', 0)", scope.Tenant, scope.User, args), 2 * int64(len(ids))}, // the beginning of the message, for the title
		"Load":     {fmt.Sprintf("execute loaded ('%s', '{%s}')", scope.Tenant, args), 0},
		"Passages": {fmt.Sprintf("execute passages ('%s', %d, '{%s}', '{0}', '{0}', '{6}', '{%d}', 2, 5, 100000)", scope.Tenant, scope.User, out.Conversation.ID, ids[0]), 0},
	} {
		if blocks := toastBlocks(t, conn, tc.statement); blocks > tc.most {
			t.Errorf("%s reads %d blocks of long texts for %d units, want at most %d", name, blocks, len(ids), tc.most)
		}
	}
}

// Units of long messages have the same texts for searches, jobs and passages as those of short ones.
func TestUnitsOfLongMessageHaveItsText(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	c := newConversation("a", 0, 3)
	c.Messages[0].Text = "Grüße. " + longText(t)
	id := b.upsert(t, scope, c).Conversation.ID
	ids := b.unitsOf(t, id)
	described, err := b.Describe(t.Context(), scope, retrieve.Request{Kind: retrieve.Chat}, ids)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	var positions []chat.Position
	for _, d := range described {
		if d.Seq == 0 && d.End > 0 {
			got, want = append(got, d.Text), append(want, c.Messages[0].Text[d.Start:d.End])
			positions = append(positions, chat.Position{Conversation: id, Start: d.Start, End: d.End, Unit: d.ID})
		}
		if wantTitle := d.Seq == 0 && d.Start == 0; (d.Heading != "") != wantTitle && d.End > 0 {
			t.Errorf("the unit at %d of message %d has the heading %q", d.Start, d.Seq, d.Heading)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 100 {
		t.Errorf("Describe of %d units (-want +got):\n%s", len(want), diff)
	}
	passages, err := b.Passages(t.Context(), scope, positions, 0)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, p := range passages {
		got = append(got, p.Message.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Passages (-want +got):\n%s", diff)
	}
}

// longText returns a text of a MiB that compresses badly, so that PostgreSQL stores it in several blocks.
func longText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for x := uint64(1); b.Len() < 1<<20; x = x*6364136223846793005 + 1442695040888963407 {
		fmt.Fprintf(&b, "%d. ", x)
	}
	return b.String()
}

// toastBlocks returns how many blocks of the long texts of messages a statement reads.
func toastBlocks(t *testing.T, conn *pgxpool.Pool, sql string) (blocks int64) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	const counter = "select pg_stat_get_xact_blocks_fetched(reltoastrelid) from pg_class where relname = 'messages'"
	var before int64
	if err := tx.QueryRow(t.Context(), counter).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), counter).Scan(&blocks); err != nil {
		t.Fatal(err)
	}
	return blocks - before
}

// A conversation is read for a request only if its texts fit into the memory of requests.
func TestConversationsAreReadWithinTheBudget(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	c := newConversation("a", 0, 1)
	c.Messages[0].Text = longText(t)
	id := b.upsert(t, scope, c).Conversation.ID
	for name, tc := range map[string]struct {
		budget  int64
		refused bool
	}{"Fits": {2 << 20, false}, "Exceeds": {1 << 19, true}} {
		use := tenant.NewBudget(tc.budget, tc.budget).NewMemoryUse()
		ctx := tenant.WithMemoryUse(t.Context(), use)
		if _, _, err := b.Conversations().Get(ctx, scope, id); fault.Is(err, fault.RateLimited) != tc.refused {
			t.Errorf("%s: reading: %v, want refused = %t", name, err, tc.refused)
		}
		_, err := b.Conversations().Upsert(tenant.WithMemoryUse(t.Context(), tenant.NewBudget(tc.budget, tc.budget).NewMemoryUse()), scope, c)
		if fault.Is(err, fault.RateLimited) != tc.refused {
			t.Errorf("%s: storing more messages: %v, want refused = %t", name, err, tc.refused)
		}
	}
}
