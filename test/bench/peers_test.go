package bench

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

//go:embed peers.py
var peersProgram string

// peers is a Python process with mem0, LangGraph's store and onnxruntime.
type peers struct {
	in      io.WriteCloser
	answers *bufio.Scanner
}

type answer struct {
	Seconds float64         `json:"seconds"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
}

// startPeers starts the process, which ends with the test.
func startPeers(t testing.TB) *peers {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := devenv.OpenBenchPeers(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	at, collection := testkit.Milvus(t), "bench_mem0"
	inside, err := milvustest.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if err := milvustest.Drop(t.Context(), inside, collection); err != nil { // of an earlier run that was killed
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "python3", "-c", peersProgram)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "BENCH_DIR="+dir, "BENCH_MODEL="+testkit.ModelDir(t),
		"BENCH_MILVUS=http://"+at.Addr, "BENCH_MILVUS_TOKEN="+at.User+":"+at.Password, "BENCH_COLLECTION="+collection,
		"BENCH_POSTGRES="+postgrestest.Create(t).OwnerURL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peers{in, bufio.NewScanner(out)}
	p.answers.Buffer(nil, 64<<20)
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	p.read(t, "start")
	t.Cleanup(func() { p.do(t, "close", nil, nil) })
	return p
}

// do runs an operation and returns the time it took inside the process.
func (p *peers) do(t testing.TB, op string, args map[string]any, result any) time.Duration {
	t.Helper()
	request := map[string]any{"op": op}
	maps.Copy(request, args)
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	a := p.read(t, op)
	if result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
	}
	return time.Duration(a.Seconds * 1e9)
}

func (p *peers) read(t testing.TB, op string) (a answer) {
	t.Helper()
	if !p.answers.Scan() {
		t.Fatalf("%s: the peers' process ended: %v", op, p.answers.Err())
	}
	if err := json.Unmarshal(p.answers.Bytes(), &a); err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	if a.Error != "" {
		t.Fatalf("%s: %s", op, a.Error)
	}
	return a
}
