package apiserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// python runs a program of testdata with the Python MCP client installed.
func python(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	site, err := devenv.PythonMCP(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{program}, arguments...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

// The official Python client uses every tool, with the old and the new protocol.
func TestMCPWithPython(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	chatID := h.ok(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", ingestText).json(t)["conversationId"].(string)
	for mode, protocol := range map[string]string{"legacy": "2025-11-25", "auto": "2026-07-28"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			out := python(t, "testdata/mcp_client.py", "http://"+h.addr+"/mcp", h.alice, chatID, mode, "tools")
			if !strings.Contains(out, "protocol "+protocol) {
				t.Errorf("%s", out)
			}
		})
	}
}

func TestMCPCancellationWithPython(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"legacy", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h, s := newStuckServer(t)
			python(t, "testdata/mcp_client.py", "http://"+h.addr+"/mcp", h.alice, "", mode, "cancel")
			<-s.began
			if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "the client canceled the call") {
				t.Errorf("the work ended with %v", err)
			}
		})
	}
}
