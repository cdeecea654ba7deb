package apiserver

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// The token and the memories of a copied tenant work on a server of the other database, and nothing of
// other tenants does.
func TestCopiedTenant(t *testing.T) {
	t.Parallel()
	destination := postgrestest.CreateInCell(t, 7)
	source, from := newRealServerOn(t, openUnindexed(t))
	target, to := newRealServerOn(t, openUnindexedIn(t, destination))
	alice, bob := from.tenant(t, "moved", "alice", false), from.tenant(t, "moved", "bob", false)
	stranger := from.tenant(t, "stays", "alice", false)
	for _, token := range []string{alice, stranger} {
		got := source.call(t, token, "POST", "/api/memory", `{"text":"The spare key is under the blue flowerpot."}`)
		if got.status != 200 {
			t.Fatalf("create a memory: %d %s", got.status, got.body)
		}
	}
	search := func(h *testServer, token string) answer {
		t.Helper()
		return h.call(t, token, "POST", "/api/search", `{"query":"Where is the spare key?","minScore":0}`)
	}
	for who, token := range map[string]string{"alice": alice, "stranger": stranger} {
		if got := search(target, token); got.status != 401 {
			t.Errorf("%s at the target before the copy: %d %s", who, got.status, got.body)
		}
	}
	id := from.apply(t, "moved", true)
	_, err := postgres.CopyTenant(t.Context(), postgres.CopyConfig{SourceURL: from.ownerURL, TargetURL: destination.OwnerURL, Tenant: string(id)})
	if err != nil {
		t.Fatal(err)
	}
	to.apply(t, "moved", false)
	if got := search(target, alice); got.status != 200 || !strings.Contains(got.body, "flowerpot") {
		t.Errorf("search in the copy: %d %s", got.status, got.body)
	}
	if got := search(target, bob); got.status != 200 || strings.Contains(got.body, "flowerpot") {
		t.Errorf("search of the other user: %d %s", got.status, got.body)
	}
	if got := search(target, stranger); got.status != 401 {
		t.Errorf("the tenant that stays at the target: %d %s", got.status, got.body)
	}
	got := target.call(t, alice, "POST", "/api/memory", `{"text":"Stored in the other database."}`)
	if got.status != 200 {
		t.Errorf("create a memory in the copy: %d %s", got.status, got.body)
	}
}
