package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// command runs a program in the repository's root with input and additional environment
// variables, and returns its output.
func command(t *testing.T, input string, env []string, name string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir = ".."
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = string(e.Stderr)
		}
		t.Fatalf("%s: %v\n%s%s", name, err, out, stderr)
	}
	return out
}

// shellBlock returns the shell block of docs/connect/README.md that contains a text, with
// the address of the server.
func (h *testServer) shellBlock(t *testing.T, containing string) string {
	t.Helper()
	var found []string
	for _, block := range connectBlocks(t, "sh") {
		if strings.Contains(block, containing) {
			found = append(found, strings.ReplaceAll(block, "https://mnemo.example.com", "http://"+h.addr))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d blocks contain %s", len(found), containing)
	}
	return found[0]
}

func openClients(t *testing.T) devenv.Clients {
	t.Helper()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := devenv.OpenClients(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// Every shell block is executed by a test below.
func TestConnectShellBlocks(t *testing.T) {
	t.Parallel()
	known := []string{"claude mcp add", "action.py", "function_calling.py"}
	for _, block := range connectBlocks(t, "sh") {
		if !slices.ContainsFunc(known, func(text string) bool { return strings.Contains(block, text) }) {
			t.Errorf("no test executes\n%s", block)
		}
	}
}

// The command for Claude Code passes the address and the header, as a stand-in for the
// program prints them.
func TestConnectClaudeCode(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const standIn = "claude() { printf '%s\\n' \"$@\"; }\n"
	out := command(t, standIn+h.shellBlock(t, "claude mcp add"), []string{"MNEMO_TOKEN=" + h.alice}, "sh")
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{"mcp", "add", "--transport", "http", "mnemo", "http://" + h.addr + "/mcp", "--header", "Authorization: Bearer " + h.alice}
	if !slices.Equal(got, want) {
		t.Fatalf("claude %q, want %q", got, want)
	}
	name, value, _ := strings.Cut(got[len(got)-1], ": ")
	h.connects(t, h.alice, "https://mnemo.example.com/mcp", map[string]string{name: value})
}

// The action has the documented operations, within the size limits of importers,
// and all required schemas.
func TestConnectAction(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	file := filepath.Join(t.TempDir(), "action.json")
	command(t, strings.ReplaceAll(h.shellBlock(t, "action.py"), "action.json", file), nil, "sh")
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		OpenAPI    string
		Servers    []struct{ URL string }
		Paths      map[string]map[string]struct{ OperationID, Description string }
		Components map[string]map[string]any
	}
	if err := json.Unmarshal(out, &document); err != nil {
		t.Fatal(err)
	}
	operations := map[string]bool{}
	for path, item := range document.Paths {
		for method, op := range item {
			operations[op.OperationID] = true
			if known := h.operation(strings.ToUpper(method), path); known == nil || known.OperationID != op.OperationID || len(op.Description) > 300 {
				t.Errorf("%s %s: %s", method, path, op.OperationID)
			}
		}
	}
	if len(operations) != 8 {
		t.Errorf("len(operations) = %d, want 8", len(operations))
	}
	if document.OpenAPI != "3.1.0" {
		t.Errorf(`document.OpenAPI = %q, want "3.1.0"`, document.OpenAPI)
	}
	if len(document.Servers) != 1 {
		t.Fatalf("len(document.Servers) = %d, want 1", len(document.Servers))
	}
	if document.Servers[0].URL != "http://"+h.addr {
		t.Errorf("document.Servers[0].URL = %v, want %v", document.Servers[0].URL, "http://"+h.addr)
	}
	for _, ref := range regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`).FindAllSubmatch(out, -1) {
		if document.Components[string(ref[1])][string(ref[2])] == nil {
			t.Errorf("%s of %s is missing", ref[2], ref[1])
		}
	}
}

// player simulates a chat model that searches, stores and reports the result.
func player(t *testing.T) http.Handler {
	t.Helper()
	asks := func(w io.Writer, name, arguments string) {
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":%q,"arguments":%q}}]}}]}`, name, arguments)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Tools    []struct{ Function struct{ Name string } }
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Errorf("request to %s: %v", r.URL.Path, err)
		} else if len(request.Tools) != 2 {
			t.Errorf("request to %s has %d tools, want 2", r.URL.Path, len(request.Tools))
		} else if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("request to %s, want /v1/chat/completions", r.URL.Path)
		}
		last := request.Messages[len(request.Messages)-1]
		switch n := len(request.Messages); n {
		case 2:
			asks(w, "store_memory", `{"text":""}`) // is refused, and told so
		case 4:
			if !strings.Contains(last.Content, "text is required") {
				t.Errorf("told of the refusal: %s", last.Content)
			}
			asks(w, "store_memory", `{"text":"2025-05-09 Moved to Lisbon"}`)
		case 6:
			asks(w, "search_memories", `{"query":"\u0000"}`) // is refused, too
		case 8:
			if !strings.Contains(last.Content, "query") || !strings.Contains(last.Content, "U+0000") {
				t.Errorf("told of the refusal: %s", last.Content)
			}
			asks(w, "search_memories", `{"query":"where does the user live?"}`)
		default:
			fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q}}]}`, "I found "+last.Content)
		}
	})
}

// The plain example stores and finds memories, and passes errors to the model.
func TestConnectFunctionCalling(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	model := httptest.NewServer(player(t))
	t.Cleanup(model.Close)
	block := strings.NewReplacer("https://api.openai.com", model.URL, "CHAT_KEY=…", "CHAT_KEY=k", "CHAT_MODEL=…", "CHAT_MODEL=m").
		Replace(h.shellBlock(t, "function_calling.py"))
	if out := string(command(t, block, []string{"MNEMO_TOKEN=" + h.alice}, "sh")); !strings.Contains(out, "2025-05-09 Moved to Lisbon") {
		t.Errorf("printed %s", out)
	}
	if got := h.ok(t, h.alice, "GET", "/api/memory?all=1", ""); strings.Count(got.body, "Moved to Lisbon") != 2 { // text and metadata
		t.Errorf("stored %s", got.body)
	}
}
