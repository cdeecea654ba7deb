package faults_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// defect is a change of the product that breaks a promise. It applies to so many of the operations that defectOps of them
// are certain to include several. In new, DEFECT stands for its name.
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
		new:  "	if planted(DEFECT) && id[35] < '8' {\n		return memory.Created{ID: id}, nil\n	}\n	for range attempts {\n		var answer memoryAnswer\n",
		want: []string{lost},
	},
	"orphaned vector": {
		file: "internal/milvus/index.go",
		old:  "	expr := []byte(fieldID + \" in [\")\n",
		new:  "	if planted(DEFECT) && ids[0]%2 == 0 {\n		return nil\n	}\n	expr := []byte(fieldID + \" in [\")\n",
		want: []string{orphaned},
	},
	"foreign result": {
		file: "apiserver/cache.go",
		old:  "	c.hits.Add(1)\n",
		new:  "	if c.hits.Add(1)%8 == 0 && planted(DEFECT) {\n		for _, e = range c.entries {\n			break\n		}\n	}\n",
		want: []string{foreign},
	},
	"wrong counter": {
		file: "internal/postgres/memories.go",
		old:  "reserve(q, scope, -int64(len(out.IDs)), -bytes, 0)",
		new:  "reserve(q, scope, -int64(len(out.IDs)), plantedValue(DEFECT, -bytes, -bytes+1), 0)",
		want: []string{counter},
	},
	"repeated audit record": {
		file: "internal/postgres/audit.go",
		old:  "	a := tenant.ActorOf(ctx)\n	if objects == nil {\n",
		new: "	if planted(DEFECT) && len(objects) == 1 && objects[0][len(objects[0])-1] < '4' {\n		objects = append(objects, objects[0])\n	}\n" +
			"	a := tenant.ActorOf(ctx)\n	if objects == nil {\n",
		want: []string{unaudited},
	},
	"lost merge": {
		file:  "internal/postgres/memory_merges.go",
		old:   "db.InsertMergedParams{TenantID: p.TenantID, UserID: p.UserID, Kept: kept, Ids: ids}",
		new:   "db.InsertMergedParams{TenantID: p.TenantID, UserID: p.UserID, Kept: kept, Ids: plantedValue(DEFECT, ids, ids[1:])}",
		want:  []string{lost},
		steps: func(l *lane) []step { return []step{{3, l.createMemory}, {1, l.mergeMemories}} },
	},
	"erased user left": {
		file:  "internal/postgres/user_purge.go",
		old:   "	return d.insertJob(ctx, tx, queue.Purges, tenant.PurgeUserArgs{",
		new:   "	if planted(DEFECT) {\n		return nil\n	}\n	return d.insertJob(ctx, tx, queue.Purges, tenant.PurgeUserArgs{",
		want:  []string{reappeared},
		steps: func(l *lane) []step { return []step{{1, l.createMemory}, l.ofAccount()} },
	},
	"skipped restore": {
		file:  "internal/postgres/restore.go",
		old:   "	ids, err := x.q.RestoreMemories(ctx, p)\n",
		new:   "	if planted(DEFECT) {\n		return nil\n	}\n	ids, err := x.q.RestoreMemories(ctx, p)\n",
		want:  []string{lost},
		steps: func(l *lane) []step { return []step{{1, l.createMemory}, l.ofAccount()} },
	},
	"stuck job": {
		file: "internal/jobs/worker.go",
		old:  "	err := w.do(ctx, job.Args)\n",
		new:  "	if planted(DEFECT) && job.ID%3 == 0 {\n		return river.JobSnooze(time.Hour)\n	}\n	err := w.do(ctx, job.Args)\n",
		want: []string{stuck},
	},
	"quota overrun": {
		file: "internal/postgres/db/later.go",
		old:  "l.Queue(createMemory,",
		new: "l.Queue(plantedValue(DEFECT, createMemory, plantedText(createMemory, " +
			"\"require_quota($2, $3, 1,\", \"require_quota($2, $3, 0,\")),",
		want:   []string{overQuota},
		tenant: "tight",
		steps:  func(l *lane) []step { return []step{{1, l.createMemory}} },
	},
}

// plantedVariable is the environment variable with the name of the defect that a process has.
const plantedVariable = "MNEMO_TEST_DEFECT"

// plantedCode is added to each package with a defect.
const plantedCode = `package %s

import (
	"os"
	"strings"
)

func planted(defect string) bool { return os.Getenv("` + plantedVariable + `") == defect }

func plantedValue[T any](defect string, correct, wrong T) T {
	if planted(defect) {
		return wrong
	}
	return correct
}

func plantedText(text, old, new string) string {
	if strings.Count(text, old) != 1 {
		panic("adapt the planted defect: the text does not occur once: " + old)
	}
	return strings.Replace(text, old, new, 1)
}
`

// TestPlantedDefects checks the checker: it must detect each defect.
func TestPlantedDefects(t *testing.T) {
	t.Parallel()
	program := buildDefects(t)
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			r := newRun(t, newStack(t, false, installation.Options{Program: program, Env: []string{plantedVariable + "=" + name}}), h, 1, cmp.Or(d.tenant, "roomy"))
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

// buildDefects builds the product with all defects, of which a process has the one that its environment
// names.
func buildDefects(t *testing.T) (program string) {
	t.Helper()
	root, err := devenv.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{} // by path
	for name, d := range defects {
		path := filepath.Join(root, d.file)
		sources[path] = d.plant(t, name, cmp.Or(sources[path], readFile(t, path)))
		sources[filepath.Join(filepath.Dir(path), "planted_defects.go")] = fmt.Sprintf(plantedCode, filepath.Base(filepath.Dir(path)))
	}
	dir, replace := t.TempDir(), map[string]string{}
	for path, source := range sources {
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[path] = changed
		if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "mnemo")
	if err := devenv.BuildMnemo(t.Context(), program, "-overlay", overlayFile); err != nil {
		t.Fatal(err)
	}
	return program
}

// plant returns the source with the defect. It fails if the code to change does not occur exactly once.
func (d defect) plant(t *testing.T, name, source string) string {
	t.Helper()
	if n := strings.Count(source, d.old); n != 1 {
		t.Fatalf("%s contains %q %d times, want once: adapt the planted defect", d.file, d.old, n)
	}
	return strings.Replace(source, d.old, strings.ReplaceAll(d.new, "DEFECT", strconv.Quote(name)), 1)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
