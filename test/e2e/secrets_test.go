package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/test/secrettest"
)

var (
	// secrets are all secrets of the run.
	secrets = &secrettest.Secrets{}
	// recorder sends the requests of all tests.
	recorder = &secrettest.Recorder{Secrets: secrets}
	// replicaLogs are the logs of all replicas that tests started.
	replicaLogs = &journal{}
)

// leaks searches everything that the run of all tests left behind for its secrets, and
// describes what contains one.
func (p *up) leaks() (found []string) {
	if err := p.learn(); err != nil {
		return []string{"collect the secrets: " + err.Error()}
	}
	search := func(place, known, text string) {
		if !strings.Contains(text, known) {
			found = append(found, fmt.Sprintf("%s: the search does not find %q, which is there", place, known))
		}
		for _, name := range secrets.Find(text) {
			found = append(found, fmt.Sprintf("%s: %s", place, name))
		}
	}
	search("logs of replicas", "", replicaLogs.all())
	errs := []error{p.searchErrors(search), p.searchLogs(search), p.searchMetrics(search), p.searchKubernetes(search), p.searchDatabase(search)}
	if err := errors.Join(errs...); err != nil {
		found = append(found, "search: "+err.Error())
	}
	return found
}

// learn adds the secrets of the configuration and those that the cluster still has.
func (p *up) learn() error {
	for _, name := range []string{"MNEMO_TOKEN", "MNEMO_TOKEN_2", "MNEMO_PASSWORD", "MILVUS_PASSWORD"} {
		if !secrets.Add(name, p.env[name]) {
			return fmt.Errorf("%s is not a secret", name)
		}
	}
	for _, name := range []string{"DATABASE_URL", "DATABASE_OWNER_URL"} {
		u, err := url.Parse(p.env[name])
		if err != nil {
			return err
		}
		if password, _ := u.User.Password(); !secrets.Add("password in "+name, password) {
			return fmt.Errorf("%s contains no secret", name)
		}
	}
	raw, err := p.kubectl("get", "secrets", "--all-namespaces", "-l", "mnemo.dev/tenant", "-o", "json")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return fmt.Errorf("decode Secrets: %w", err)
	}
	for _, item := range list.Items {
		keys := []string{"token", "password"}
		if strings.HasSuffix(item.Metadata.Name, "-key") { // of an application, which does not sign in
			keys = keys[:1]
		}
		for _, key := range keys {
			value, err := base64.StdEncoding.DecodeString(item.Data[key])
			if err != nil || !secrets.Add(key+" in "+item.Metadata.Name, string(value)) {
				return fmt.Errorf("Secret %s has no %s: %w", item.Metadata.Name, key, err)
			}
		}
	}
	return nil
}

// search searches a text. It must contain the known one, which proves that it is the
// text that was meant.
type search func(place, known, text string)

// searchErrors searches the responses with an error and the traces. Its own request is one
// of them; it waits until the server has exported its span.
func (p *up) searchErrors(search search) error {
	resp, err := http.Get(p.env["MNEMO_URL"] + "/api/buckets")
	if err != nil {
		return err
	}
	resp.Body.Close()
	search("errors", "GET /api/buckets: 401", recorder.Errors())
	const span = "GET /api/buckets"
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 150 {
		if strings.Contains(p.traces.all(), span) {
			break
		}
		<-tick.C
	}
	search("traces", span, p.traces.all())
	return nil
}

func (p *up) searchLogs(search search) error {
	known := map[string]string{"mnemo-serve.log": "serving", "mnemo-operator.log": "Tenant"}
	files, err := filepath.Glob(filepath.Join(p.dir, "logs", "*"))
	if err != nil || len(files) < len(known) {
		return fmt.Errorf("there are %d logs: %w", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		search(filepath.Base(file), known[filepath.Base(file)], string(text))
	}
	return nil
}

func (p *up) searchMetrics(search search) error {
	for _, name := range []string{"MNEMO_METRICS_URL", "MNEMO_OPERATOR_METRICS_URL"} {
		resp, err := http.Get(p.env[name])
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		search("metrics at "+name, "mnemo_build_info", string(text))
	}
	return nil
}

// searchKubernetes searches every object except Secrets: Tenants with their status, events
// and all others.
func (p *up) searchKubernetes(search search) error {
	kinds, err := p.kubectl("api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		return err
	}
	for kind := range strings.FieldsSeq(kinds) {
		if kind == "secrets" {
			continue
		}
		objects, err := p.kubectl("get", kind, "--all-namespaces", "--show-managed-fields", "-o", "json")
		if err != nil {
			return err
		}
		known := map[string]string{"tenants.mnemo.dev": `"conditions"`, "events": `"involvedObject"`}
		search("Kubernetes "+kind, known[kind], objects)
	}
	return nil
}

func (p *up) searchDatabase(search search) error {
	known := map[string]string{"tenants.name": "acme", "audit_records.verb": "."}
	return forColumns(p.env["DATABASE_OWNER_URL"], func(column, text string) { search("column "+column, known[column], text) })
}

func forColumns(ownerURL string, visit func(column, text string)) error {
	return secrettest.Columns(context.Background(), ownerURL, visit)
}

// kubectl runs kubectl outside of a test.
func (p *up) kubectl(args ...string) (string, error) {
	cmd := exec.Command(p.env["KUBECTL"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.env["KUBECONFIG"])
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
