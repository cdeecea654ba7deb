package imports_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

var (
	conversations = flag.Int("conversations", 300, "conversations in the export")
	exportBytes   = flag.Int64("bytes", 12<<20, "approximate size of the JSON in the export in bytes")
	quota         = flag.Int64("quota", 200, "quota of conversations")
	patience      = flag.Duration("patience", 5*time.Minute, "timeout of an import")
)

// mostMemory is the limit of a server's memory in MiB, including its embedding
// model, regardless of the size of the import.
const mostMemory = 256

// TestImportSurvivesKill imports an export into two servers, kills and restarts both
// during the import, and imports it a second time.
func TestImportSurvivesKill(t *testing.T) {
	t.Parallel()
	export := generate(t)
	d := postgrestest.Create(t)
	token := makeTenant(t, d)
	a, b := start(t, d), start(t, d)

	began := time.Now()
	id := a.upload(t, token, export)
	info, err := os.Stat(export)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("uploaded %d MiB in %s", info.Size()>>20, time.Since(began).Round(time.Millisecond))
	var p progress
	eventually(t, *patience, func() string {
		if p = b.progress(t, token, id); p.Imported >= *conversations/3 {
			return ""
		}
		return fmt.Sprintf("%+v", p)
	})
	t.Logf("killing both after %s: %+v; peaks %d and %d MiB", time.Since(began).Round(time.Second), p, a.peak(t), b.peak(t))
	inBounds(t, a, b)
	a.kill()
	b.kill()
	if p.Status != "running" || p.Imported >= *conversations {
		t.Fatalf("the import completed before the servers were killed: %+v", p)
	}

	restarted := time.Now()
	a, b = start(t, d), start(t, d)
	eventually(t, *patience, func() string {
		if p = a.progress(t, token, id); p.Status == "done" {
			return ""
		}
		return fmt.Sprintf("%+v", p)
	})
	t.Logf("done %s after the restart: %+v; peaks %d and %d MiB", time.Since(restarted).Round(time.Second), p, a.peak(t), b.peak(t))
	blocked := max(0, *conversations-int(*quota))
	if p.Total != *conversations {
		t.Errorf("p.Total = %v, want %v", p.Total, *conversations)
	}
	if p.Imported != *conversations {
		t.Errorf("p.Imported = %v, want %v", p.Imported, *conversations)
	}
	if p.Blocked != blocked {
		t.Errorf("p.Blocked = %v, want %v", p.Blocked, blocked)
	}
	if p.Updated+p.Skipped+p.Failed != 0 {
		t.Errorf("p.Updated + p.Skipped + p.Failed = %d, want 0", p.Updated+p.Skipped+p.Failed)
	}
	checkRows(t, d, id, blocked)
	found(t, b, token)

	again := time.Now()
	second := b.upload(t, token, export)
	eventually(t, *patience, func() string {
		if p = b.progress(t, token, second); p.Status == "done" {
			return ""
		}
		return fmt.Sprintf("%+v", p)
	})
	t.Logf("imported again in %s: %+v; peaks %d and %d MiB", time.Since(again).Round(time.Second), p, a.peak(t), b.peak(t))
	if p.Unchanged != *conversations {
		t.Errorf("p.Unchanged = %v, want %v", p.Unchanged, *conversations)
	}
	if p.Imported+p.Updated+p.Failed != 0 {
		t.Errorf("p.Imported + p.Updated + p.Failed = %d, want 0", p.Imported+p.Updated+p.Failed)
	}
	inBounds(t, a, b)
}

func inBounds(t *testing.T, servers ...*server) {
	t.Helper()
	for _, s := range servers {
		if mib := s.peak(t); mib > mostMemory {
			t.Errorf("%s used %d MiB, want at most %d", s.url, mib, mostMemory)
		}
	}
}

// makeTenant creates a tenant with one user, as the operator does, and returns the
// user's token.
func makeTenant(t *testing.T, d postgrestest.Database) string {
	t.Helper()
	model, err := embed.FindModel(embed.DefaultModel)
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, Generation: model.Generation()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	spec := tenanttest.NewSpec()
	spec.Quota.Conversations, spec.Quota.Storage, spec.Quota.RequestsPerMinute = *quota, 10<<30, 1_000_000
	if _, err := db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	location, err := db.EnsurePlacement(t.Context(), spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, location)
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Install(t.Context(), spec.ID, spec.Users[0].Name, tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// ensure creates the tenant's partition and drops it after the test.
func ensure(t *testing.T, location placement.Location) {
	t.Helper()
	at := testkit.Milvus(t)
	index, err := milvus.Open(t.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: 384})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() string {
		if _, err := placement.WaitLoaded(index).Ensure(t.Context(), placement.Placement{Location: location}); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() {
		if err := index.Drop(context.WithoutCancel(t.Context()), location); err != nil {
			t.Errorf("drop partition: %v", err)
		}
		_ = index.Close()
	})
}

// checkRows queries the database: each conversation has a row in the ledger, the
// newest are active and the others blocked, and no chunks remain.
func checkRows(t *testing.T, d postgrestest.Database, id string, blocked int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for what, tc := range map[string]struct {
		sql  string
		want int
	}{
		"ledger rows":           {"select count(distinct ordinal) from import_ledger where import_id = $1 and outcome = 'imported'", *conversations},
		"conversations":         {"select count(*) from conversations where import_id = $1", *conversations},
		"blocked conversations": {"select count(*) from conversations where import_id = $1 and status = 'blocked'", blocked},
		"chunks":                {"select count(*) from import_chunks where import_id = $1", 0},
		"blocked conversations newer than active ones": {"select count(*) from conversations b where b.import_id = $1 and b.status = 'blocked' and b.updated_at > (select min(updated_at) from conversations where status = 'active')", 0},
		"conversations with missing messages":          {"select count(*) from conversations c where c.import_id = $1 and c.message_count <> (select count(*) from messages m where m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id)", 0},
	} {
		var n int
		if err := conn.QueryRow(t.Context(), tc.sql, id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != tc.want {
			t.Errorf("there are %d %s, want %d", n, what, tc.want)
		}
	}
}

// found checks that a search finds a conversation of the export.
func found(t *testing.T, s *server, token string) {
	t.Helper()
	var out struct {
		Results []struct{ ConversationID, Text string }
	}
	s.call(t, token, "POST", "/api/chat-history/search", "application/json", strings.NewReader(`{"query":"the lighthouse of the island and the ferry"}`), http.StatusOK, &out)
	if len(out.Results) == 0 {
		t.Error("keyword search finds no imported conversation")
	}
}
