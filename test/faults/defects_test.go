package faults_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// defect is a change of the product that breaks a promise. It applies to so many of the
// operations that defectOps of them are certain to include several.
type defect struct {
	file     string
	old, new string
	// want are the kinds of violations of which the checker must report one.
	want []string
	// tenant is the tenant whose users work: "roomy" by default.
	tenant string
	// steps replaces what users do; nil for everything.
	steps func(l *lane) []step
}

var defects = map[string]defect{
	"lost write": {
		file: "internal/postgres/memories.go",
		old:  "	for range attempts {\n		var answer memoryAnswer\n",
		new:  "	if id[35] < '8' {\n		return memory.Created{ID: id}, nil\n	}\n	for range attempts {\n		var answer memoryAnswer\n",
		want: []string{lost},
	},
	"orphaned vector": {
		file: "internal/milvus/index.go",
		old:  "	expr := []byte(fieldID + \" in [\")\n",
		new:  "	if ids[0]%2 == 0 {\n		return nil\n	}\n	expr := []byte(fieldID + \" in [\")\n",
		want: []string{orphaned},
	},
	"foreign result": {
		file: "apiserver/cache.go",
		old:  "	c.hits.Add(1)\n",
		new:  "	if c.hits.Add(1)%8 == 0 {\n		for _, e = range c.entries {\n			break\n		}\n	}\n",
		want: []string{foreign},
	},
	"wrong counter": {
		file: "internal/postgres/memories.go",
		old:  "reserve(ctx, q, scope, -int64(len(out.IDs)), -bytes, 0)",
		new:  "reserve(ctx, q, scope, -int64(len(out.IDs)), -bytes+1, 0)",
		want: []string{counter},
	},
	"repeated audit record": {
		file: "internal/postgres/audit.go",
		old:  "	a := tenant.ActorOf(ctx)\n	if objects == nil {\n",
		new:  "	if len(objects) == 1 && objects[0][len(objects[0])-1] < '4' {\n		objects = append(objects, objects[0])\n	}\n	a := tenant.ActorOf(ctx)\n	if objects == nil {\n",
		want: []string{unaudited},
	},
	"stuck job": {
		file: "internal/jobs/worker.go",
		old:  "	err := w.do(ctx, job.Args)\n",
		new:  "	if job.ID%3 == 0 {\n		return river.JobSnooze(time.Hour)\n	}\n	err := w.do(ctx, job.Args)\n",
		want: []string{stuck},
	},
	"quota overrun": {
		file:   "internal/postgres/db/memories.sql.go",
		old:    "x.memories + 1 <= q.user_memories",
		new:    "x.memories <= q.user_memories",
		want:   []string{overQuota},
		tenant: "tight",
		steps:  func(l *lane) []step { return []step{{1, l.createMemory}} },
	},
}

// TestPlantedDefects checks the checker: it must detect each defect.
func TestPlantedDefects(t *testing.T) {
	t.Parallel()
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			r := newRun(t, newStack(t, d.build(t), false), h, 1, cmp.Or(d.tenant, "roomy"))
			for _, l := range r.lanes {
				if d.steps != nil {
					l.steps = d.steps(l)
				}
			}
			found := func() bool { return slices.ContainsFunc(d.want, func(kind string) bool { return h.count(kind) > 0 }) }
			r.start(t.Context(), time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r.poll(ctx, func() bool { return found() || h.acknowledged() >= defectOps })
			r.stop()
			if !found() {
				r.hurry(t.Context())
				r.converge(t.Context(), 10*time.Second)
				r.check(t.Context())
			}
			if !found() {
				t.Errorf("no violation %v was found:\n%s", d.want, h.report())
			}
			t.Logf("found %v after %d operations\n%s", d.want, h.acknowledged(), h.report())
		})
	}
}

// defectOps is the number of acknowledged operations after which the stores are compared.
const defectOps = 80

// build builds the product with the defect. It fails if the code to change does not
// occur exactly once.
func (d defect) build(t *testing.T) (program string) {
	t.Helper()
	root, err := devenv.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(root, d.file), t.TempDir()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), d.old); n != 1 {
		t.Fatalf("%s contains %q %d times, want once: adapt the planted defect", d.file, d.old, n)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{changed: strings.Replace(string(source), d.old, d.new, 1), overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "mnemo")
	if err := devenv.BuildMnemo(t.Context(), program, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	return program
}
