package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// mnemo is the binary that hack/up built.
const mnemo = "../../bin/mnemo"

// startReplica runs another `mnemo serve` on the platform's stores until the test
// ends, with additional environment variables, and returns its address.
func startReplica(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.Command(mnemo, "serve")
	cmd.Env = append(os.Environ(),
		"DATABASE_URL="+platform.env["DATABASE_URL"],
		"MILVUS_ADDRESS="+platform.env["MILVUS_ADDRESS"],
		"MILVUS_USERNAME="+platform.env["MILVUS_USERNAME"],
		"MILVUS_PASSWORD="+platform.env["MILVUS_PASSWORD"],
		"MNEMO_MODEL_DIR="+platform.env["MNEMO_MODEL_DIR"],
		"MNEMO_ONNXRUNTIME="+platform.env["MNEMO_ONNXRUNTIME"],
		"MNEMO_LISTEN=127.0.0.1:0", "MNEMO_METRICS_LISTEN=127.0.0.1:0", "MNEMO_LOG_FORMAT=json",
		// It may run a job that a traced request to another replica enqueued.
		"OTEL_EXPORTER_OTLP_ENDPOINT="+platform.traces.url, "MNEMO_TRACE_RATIO=0")
	cmd.Env = append(cmd.Env, env...)
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	log := &journal{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			log.add(lines.Text())
			replicaLogs.add(lines.Text())
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address <- line.Address
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the replica failed: %v\n%s", err, log)
		} else if t.Failed() {
			t.Logf("the replica's log:\n%s", log)
		}
	})
	select {
	case a := <-address:
		return "http://" + a
	case <-read:
		t.Fatalf("the replica ended early:\n%s", log)
	case <-time.After(time.Minute):
		t.Fatalf("the replica is not ready after a minute:\n%s", log)
	}
	return ""
}

// journal collects log lines; it is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func (j *journal) String() string { return fmt.Sprintf("%.8000s", j.all()) }
