package apiserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The snippets of docs/applications.md work, in their order.
func TestApplicationSnippets(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite|tenant.AccessAdmin)
	out := h.snippets(t, "../docs/applications.md", []string{"memoryId", "memories", "users", "user", "message"}, "MNEMO_API_KEY="+key)
	if !strings.Contains(out[1], "invoices") {
		t.Errorf("the search found %s", out[1])
	}
}

// The snippets of docs/tokens.md work, in their order.
func TestTokenSnippets(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.tokens[tenant.Scope{Tenant: "one", User: 1}] = []tenant.UserToken{{ID: "phone", Name: "Phone", Access: tenant.AccessRead}}
	h.snippets(t, "../docs/tokens.md", []string{"token", "tokens", "message"}, "MNEMO_TOKEN="+h.alice, "TOKEN_ID=phone")
}

// snippets runs the snippets of a page and returns their outputs, JSON objects that have the
// wanted members.
func (h *testServer) snippets(t *testing.T, page string, wants []string, env ...string) (outputs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```sh test\n(.*?)```").FindAllSubmatch(text, -1)
	if len(snippets) != len(wants) {
		t.Fatalf("%d snippets, want %d", len(snippets), len(wants))
	}
	for i, snippet := range snippets {
		run := exec.CommandContext(t.Context(), "sh", "-c", string(snippet[1]))
		run.Env = append(append(os.Environ(), "MNEMO_URL=http://"+h.addr), env...)
		out, err := run.Output()
		var answer map[string]any
		if err != nil || json.Unmarshal(out, &answer) != nil || answer[wants[i]] == nil {
			t.Errorf("%s: %s, %v, want %s", snippet[1], out, err, wants[i])
		}
		outputs = append(outputs, string(out))
	}
	return outputs
}
