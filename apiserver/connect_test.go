package apiserver

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const connectDir = "../docs/connect/"

// connectBlocks returns the blocks of a language in docs/connect/README.md.
func connectBlocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(connectDir + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("README.md has no blocks of %s", language)
	}
	return blocks
}

// headed is a transport that adds headers to every request.
type headed map[string]string

func (w headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// variable is a reference to a token in a setting, in the syntax of any client.
var variable = regexp.MustCompile(`<.*?>|\$\{.*?\}|\{\{.*?\}\}|\$\w+`)

// connects connects to the tools with the address and the headers of a setting, in which
// the token replaces the variables.
func (h *testServer) connects(t *testing.T, token, address string, headers map[string]string) {
	t.Helper()
	if address != "https://mnemo.example.com/mcp" {
		t.Errorf("address %q", address)
	}
	for name, value := range headers {
		headers[name] = variable.ReplaceAllString(value, token)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "settings"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: "http://" + h.addr + "/mcp", HTTPClient: &http.Client{Transport: headed(headers)}}, nil)
	if err != nil {
		t.Errorf("%v: %v", headers, err)
		return
	}
	defer session.Close()
	if list, err := session.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 9 {
		t.Errorf("%v: %v, %v", headers, list, err)
	}
}

// The documented client settings parse and connect to the tools.
func TestConnectSettings(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, block := range connectBlocks(t, "json") {
		var settings struct{ McpServers, Servers map[string]map[string]any }
		if err := json.Unmarshal([]byte(block), &settings); err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		server := settings.McpServers["mnemo"]
		if server == nil {
			server = settings.Servers["mnemo"]
		}
		address, headers := addressOf(server)
		if len(headers) != 1 {
			t.Errorf("%s: headers %v", block, headers)
		}
		h.connects(t, h.alice, address, headers)
	}
}

// The settings of Codex are TOML that names the variable of the token.
func TestConnectCodex(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, block := range connectBlocks(t, "toml") {
		var settings struct {
			Servers map[string]struct {
				URL      string
				Variable string `json:"bearer_token_env_var"`
			} `json:"mcp_servers"`
		}
		script := "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.stdin.read())))"
		if err := json.Unmarshal(command(t, block, nil, "python3", "-c", script), &settings); err != nil {
			t.Fatal(err)
		}
		server := settings.Servers["mnemo"]
		if server.Variable != "MNEMO_TOKEN" {
			t.Errorf("the token is in %q", server.Variable)
		}
		h.connects(t, h.alice, server.URL, map[string]string{"Authorization": "Bearer $" + server.Variable})
	}
}

// LibreChat's own schema accepts the settings, which connect with a user's token and with
// the key of an application.
func TestConnectLibreChat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite)
	clients := openClients(t)
	blocks := connectBlocks(t, "yaml")
	for _, block := range blocks {
		cmd := clients.Node(t.Context(), "testdata/librechat.cjs", clients.Modules())
		cmd.Stdin = strings.NewReader(block)
		out, err := cmd.CombinedOutput()
		var settings struct {
			McpServers map[string]map[string]any
		}
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Errorf("%s: %v\n%s", block, err, out)
			continue
		}
		token := h.alice
		if strings.Contains(block, "APPLICATION_KEY") {
			token = key
		}
		address, headers := addressOf(settings.McpServers["mnemo"])
		h.connects(t, token, address, headers)
	}
	if len(blocks) != 2 {
		t.Errorf("%d blocks, want 2", len(blocks))
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
