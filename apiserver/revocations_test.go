package apiserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A cached token is rejected by the replica that revoked it, without a notification of the database.
func TestRevokedTokenIsRejectedImmediately(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	created := h.call(t, h.alice, "POST", "/api/tokens", `{"name":"laptop"}`).json(t)
	token := created["token"].(string)
	h.ok(t, token, "GET", "/api/buckets", "") // cached
	if got := h.call(t, h.alice, "DELETE", "/api/tokens/"+created["id"].(string), ""); got.status != http.StatusOK {
		t.Fatalf("DELETE: %d %s", got.status, got.body)
	}
	if got := h.call(t, token, "GET", "/api/buckets", ""); got.status != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d %s, want 401", got.status, got.body)
	}
}

// A user who was erased has no memories at the replica that erased them, and the next write creates another user, also at a
// replica that has not been notified.
func TestErasedUserIsEmptyImmediately(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite|tenant.AccessAdmin)
	before, err := h.actFor(t.Context(), tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 50}, Application: &tenant.Application{}}, "ada", true)
	if err != nil {
		t.Fatal(err)
	}
	stored := h.call(t, key, "POST", "/api/memory", `{"text":"adopted a cat called Miso"}`, headerUser, "ada").json(t)["memoryId"].(string)
	if got := h.call(t, key, "GET", "/api/memories/"+stored, "", headerUser, "ada"); got.status != http.StatusOK { // cached
		t.Fatalf("GET: %d %s", got.status, got.body)
	}
	if got := h.call(t, key, "DELETE", "/api/users/ada", ""); got.status != http.StatusAccepted {
		t.Fatalf("DELETE: %d %s", got.status, got.body)
	}
	if got := h.call(t, key, "GET", "/api/memories/"+stored, "", headerUser, "ada"); got.status != http.StatusNotFound {
		t.Errorf("a memory of the erased user: %d %s, want 404", got.status, got.body)
	}
	_, epoch, _ := h.Cache.get(actingHash("one", "ada"))
	h.Cache.put(actingHash("one", "ada"), before, epoch) // as at a replica that has not been notified
	h.call(t, key, "POST", "/api/memory", `{"text":"a new one"}`, headerUser, "ada")
	after, err := h.actFor(t.Context(), tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 50}, Application: &tenant.Application{}}, "ada", false)
	if err != nil || after.User == before.User || after.User == tenant.NoUser {
		t.Errorf("the write after the erasure acts for user %d, %v, as before", after.User, err)
	}
}

// A write for a user who is erased meanwhile can be repeated.
func TestWriteDuringErasureIsRetryable(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.fail(tenant.ErrUserErased)
	got := h.call(t, h.alice, "POST", "/api/memory", `{"text":"a"}`)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "tenant") {
		t.Errorf("%d %s, want 503 with Retry-After", got.status, got.body)
	}
}
