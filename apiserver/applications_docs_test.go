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
	text, err := os.ReadFile("../docs/applications.md")
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"memoryId", "memories", "users", "user", "message"}
	snippets := regexp.MustCompile("(?s)```sh test\n(.*?)```").FindAllSubmatch(text, -1)
	if len(snippets) != len(wants) {
		t.Fatalf("%d snippets, want %d", len(snippets), len(wants))
	}
	for i, snippet := range snippets {
		run := exec.CommandContext(t.Context(), "sh", "-c", string(snippet[1]))
		run.Env = append(os.Environ(), "MNEMO_URL=http://"+h.addr, "MNEMO_API_KEY="+key)
		out, err := run.Output()
		var answer map[string]any
		if err != nil || json.Unmarshal(out, &answer) != nil || answer[wants[i]] == nil {
			t.Errorf("%s: %s, %v, want %s", snippet[1], out, err, wants[i])
		}
		if i == 1 && !strings.Contains(string(out), "invoices") {
			t.Errorf("the search found %s", out)
		}
	}
}
