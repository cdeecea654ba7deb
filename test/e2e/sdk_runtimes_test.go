package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestTypeScriptSDKRuntimes runs the scenarios of the npm package in a page of another
// origin in Chromium, and in workerd, the runtime of Cloudflare Workers, with the key of an
// application.
func TestTypeScriptSDKRuntimes(t *testing.T) {
	t.Parallel()
	tools := openSDKTools(t)
	dir := newProject(t, tools, buildNpm(t, tools))
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(site.Close)
	applyTenant(t, "runtimes", "  applications: [{name: web, scopes: [read, write], allowedOrigins: [\""+site.URL+"\"]}]\n")
	options := sdkOptions{URL: platform.env["MNEMO_URL"], APIKey: applicationKey(t, "runtimes", "web")}

	t.Run("Browser", func(t *testing.T) {
		t.Parallel()
		writeText(t, filepath.Join(dir, "index.html"), browserPage)
		options := options
		options.User = "browser"
		runInBrowser(t, site.URL, options).check(t)
	})
	t.Run("Workerd", func(t *testing.T) {
		t.Parallel()
		options := options
		options.User = "workerd"
		runInWorkerd(t, dir, options).check(t)
	})
}

// sdkOptions are options of a client of the npm package.
type sdkOptions struct {
	URL    string `json:"url"`
	APIKey string `json:"apiKey"`
	User   string `json:"user"`
}

// scenarioResult is the result of runner.js.
type scenarioResult struct{ Ran, Failures []string }

func (r scenarioResult) check(t *testing.T) {
	t.Helper()
	if len(r.Ran) < 6 {
		t.Errorf("%d scenarios ran: %v", len(r.Ran), r.Ran)
	}
	for _, failure := range r.Failures {
		t.Error(failure)
	}
}

const browserPage = `<!doctype html>
<script type="importmap">{"imports": {"mnemo-client": "/node_modules/mnemo-client/dist/esm/index.js"}}</script>
<script type="module">import { run } from "/runner.js"; window.run = run;</script>`

// runInBrowser runs the scenarios in a page of Chromium.
func runInBrowser(t *testing.T, page string, options sdkOptions) (result scenarioResult) {
	t.Helper()
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testkit.Chromium(t)), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until Chromium writes no more files
		cancel()
	})
	encoded, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Run(ctx, chromedp.Navigate(page), chromedp.Poll("window.run", nil),
		chromedp.Evaluate(`run("browser", `+string(encoded)+`)`, &result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
			return p.WithAwaitPromise(true)
		}))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// runInWorkerd runs the scenarios in a worker.
func runInWorkerd(t *testing.T, dir string, options sdkOptions) (result scenarioResult) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": "workerd", "options": options})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(startWorkerd(t, dir), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// startWorkerd serves worker.js with the modules of the package and returns its URL.
func startWorkerd(t *testing.T, dir string) string {
	t.Helper()
	config := filepath.Join(dir, "workerd.capnp")
	writeText(t, config, workerdConfig(t, dir))
	clients := openClients(t)
	control, events, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	cmd := clients.Workerd(t.Context(), "serve", config, "--control-fd=3")
	cmd.ExtraFiles = []*os.File{events}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("workerd:\n%s", log.String())
		}
	})
	var listening struct{ Port int }
	line, err := bufio.NewReader(control).ReadBytes('\n')
	if err != nil {
		t.Fatalf("workerd did not start: %v", err)
	}
	if err := json.Unmarshal(line, &listening); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d/", listening.Port)
}

// workerdConfig returns a configuration of a worker that may connect to this machine.
func workerdConfig(t *testing.T, dir string) string {
	t.Helper()
	var modules strings.Builder
	add := func(name, file string) {
		fmt.Fprintf(&modules, "      (name = %q, esModule = embed %q),\n", name, file)
	}
	for _, name := range []string{"worker.js", "runner.js", "scenarios.js"} {
		add(name, name)
	}
	const dist = "node_modules/mnemo-client/dist/esm"
	files, err := filepath.Glob(filepath.Join(dir, dist, "*.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch name := filepath.Base(file); name {
		case "ai-sdk.js": // requires the package ai
		case "index.js":
			add("mnemo-client", dist+"/"+name)
		default:
			add(name, dist+"/"+name)
		}
	}
	return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (compatibilityDate = "2026-07-01", modules = [
` + modules.String() + `    ])),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`
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
