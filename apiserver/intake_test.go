package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A body of many tiny values is refused before it is decoded: three bodies of 45 MiB
// with {},{},… raised the memory of the process to 4.7 GiB.
func TestBodiesOfManyValuesAreRejected(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	body := `{"conversation":{"id":"c","title":"t","createdAt":"2026-01-01T00:00:00Z","messages":[{}` + strings.Repeat(",{}", maxValues/2) + `]}}`
	got := h.call(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", body)
	if want := fmt.Sprintf("the body must have at most %d JSON values", maxValues); got.status != http.StatusBadRequest || got.json(t)["error"] != want {
		t.Errorf("%d %.200s, want 400 with %q", got.status, got.body, want)
	}
}

func TestHasTooManyValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, json string
		want         bool
	}{
		"Few":     {"Bodies of usual size pass.", `{"a":[1,2,{"b":null}]}`, false},
		"Text":    {"Text is one value, whatever it contains.", `{"a":"` + strings.Repeat(`{[,\"`, maxValues) + `"}`, false},
		"Objects": {"Empty objects are cheap to send.", "[" + strings.Repeat("{},", maxValues) + "{}]", true},
		"Numbers": {"So are numbers.", "[" + strings.Repeat("1,", maxValues) + "1]", true},
		"Nested":  {"So are lists in lists.", strings.Repeat("[", maxValues+1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := hasTooManyValues([]byte(tc.json)); got != tc.want {
				t.Errorf("%s Got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// Bodies in memory are limited for a user and in total, in every API, and a finished request
// returns its share.
func TestIntakeIsLimited(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct{ path, body, want string }{
		"API":  {"/api/memory", `{"text":"a"}`, "memoryId"},
		"Mem0": {"/mem0/v3/memories/", `{}`, `"count":0`},
		"MCP":  {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"store_memory"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestServer(t)
			alice := h.stores.known[tenant.HashSecret(h.alice)].Scope
			fill := func(who tenant.Scope, n int64) {
				t.Helper()
				if err := h.intake.add(who, n); err != nil {
					t.Fatal(err)
				}
			}
			expect := func(status int, message string) {
				t.Helper()
				got := h.call(t, h.alice, "POST", r.path, r.body)
				if got.status != status || !strings.Contains(got.body, message) {
					t.Errorf("%d %s, want %d with %q", got.status, got.body, status, message)
				}
				if (got.header.Get("Retry-After") != "") != (status != http.StatusOK) {
					t.Errorf("status %d with Retry-After %q", got.status, got.header.Get("Retry-After"))
				}
			}
			fill(alice, maxUserIntake)
			expect(http.StatusTooManyRequests, "too many large requests at the same time")
			h.intake.remove(alice, maxUserIntake)
			expect(http.StatusOK, r.want)
			fill(tenant.Scope{Tenant: "four"}, maxUserIntake)
			fill(tenant.Scope{Tenant: "five"}, maxUserIntake)
			expect(http.StatusServiceUnavailable, "the server is receiving too much data")
			h.intake.remove(tenant.Scope{Tenant: "four"}, maxUserIntake)
			expect(http.StatusOK, r.want)
			h.intake.remove(tenant.Scope{Tenant: "five"}, maxUserIntake)
			if h.intake.total != 0 || len(h.intake.users) != 0 {
				t.Errorf("%d bytes of %d users are counted after all requests, want none", h.intake.total, len(h.intake.users))
			}
		})
	}
}

// What a rejected body read is returned as well.
func TestIntakeOfRejectedBodyIsReturned(t *testing.T) {
	t.Parallel()
	in := newIntake()
	who := tenant.Scope{Tenant: "one"}
	r := &intakeReader{Reader: strings.NewReader(strings.Repeat("x", 100)), intake: in, who: who}
	if err := in.add(who, maxUserIntake-50); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyBuffer(io.Discard, io.LimitReader(r, 100), make([]byte, 30)); err == nil {
		t.Error("a body above the limit was read")
	}
	r.release()
	in.remove(who, maxUserIntake-50)
	if in.total != 0 {
		t.Errorf("%d bytes are counted, want 0", in.total)
	}
}
