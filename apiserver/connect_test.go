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
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const connectDir = "../docs/connect/"

// headed is a transport that adds headers to every request.
type headed map[string]string

func (w headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// The documented client settings parse and connect to the tools.
func TestConnectSettings(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	text, err := os.ReadFile(connectDir + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	connected := 0
	for _, block := range blocks {
		var settings struct{ McpServers, Servers map[string]map[string]any }
		if err := json.Unmarshal(block[1], &settings); err != nil {
			t.Errorf("%s: %v", block[1], err)
			continue
		}
		server := settings.McpServers["mnemo"]
		if server == nil {
			server = settings.Servers["mnemo"]
		}
		address, headers := addressOf(server)
		if address != "https://mnemo.example.com/mcp" || len(headers) != 1 {
			t.Errorf("%s: address %q, headers %v", block[1], address, headers)
			continue
		}
		for name, value := range headers {
			headers[name] = regexp.MustCompile(`<.*?>|\$\{.*?\}|\$\w+`).ReplaceAllString(value, h.alice)
		}
		session, err := sdk.NewClient(&sdk.Implementation{Name: "settings"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: "http://" + h.addr + "/mcp", HTTPClient: &http.Client{Transport: headed(headers)}}, nil)
		if err != nil {
			t.Errorf("%s: %v", block[1], err)
			continue
		}
		if list, err := session.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 9 {
			t.Errorf("%s: %v, %v", block[1], list, err)
		}
		session.Close()
		connected++
	}
	if connected < 5 || connected != len(blocks) {
		t.Errorf("%d of %d blocks lead to the tools", connected, len(blocks))
	}
}

// addressOf returns the URL and headers of a setting.
func addressOf(server map[string]any) (address string, headers map[string]string) {
	headers = map[string]string{}
	for _, name := range []string{"url", "httpUrl"} {
		if s, ok := server[name].(string); ok {
			address = s
		}
	}
	given, _ := server["headers"].(map[string]any)
	for name, value := range given {
		headers[name], _ = value.(string)
	}
	arguments, _ := server["args"].([]any)
	env, _ := server["env"].(map[string]any)
	for i, a := range arguments {
		text, _ := a.(string)
		if strings.HasPrefix(text, "https://") {
			address = text
		}
		if i > 0 && arguments[i-1] == "--header" {
			name, value, _ := strings.Cut(text, ":")
			for variable, content := range env {
				value = strings.ReplaceAll(value, "${"+variable+"}", content.(string))
			}
			headers[name] = value
		}
	}
	return address, headers
}

// run runs an example with additional environment variables and returns its output.
func run(t *testing.T, env []string, program string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{connectDir + program}, arguments...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = string(e.Stderr)
		}
		t.Fatalf("%s: %v\n%s%s", program, err, out, stderr)
	}
	return out
}

// The action has the documented operations, within the size limits of importers,
// and all required schemas.
func TestConnectAction(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	out := run(t, nil, "action.py", "http://"+h.addr+"/")
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
	env := []string{"MNEMO_URL=http://" + h.addr, "MNEMO_TOKEN=" + h.alice, "CHAT_URL=" + model.URL + "/v1", "CHAT_KEY=k", "CHAT_MODEL=m"}
	if out := string(run(t, env, "function_calling.py", "I moved to Lisbon. Remember that.")); !strings.Contains(out, "2025-05-09 Moved to Lisbon") {
		t.Errorf("printed %s", out)
	}
	if got := h.ok(t, h.alice, "GET", "/api/memory?all=1", ""); strings.Count(got.body, "Moved to Lisbon") != 2 { // text and metadata
		t.Errorf("stored %s", got.body)
	}
}
