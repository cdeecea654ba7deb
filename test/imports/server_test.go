package imports_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// server is a running `mnemo serve`.
type server struct {
	url string
	cmd *exec.Cmd
	log *bytes.Buffer
}

// generate generates an export and returns its path.
func generate(t *testing.T) string {
	t.Helper()
	export := filepath.Join(t.TempDir(), "export.zip")
	args := []string{"run", "../../hack/genexport", "-conversations", strconv.Itoa(*conversations), "-bytes", strconv.FormatInt(*exportBytes, 10), "-o", export}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return export
}

// start starts a server on the database and waits until it is ready.
func start(t *testing.T, d postgrestest.Database) *server {
	t.Helper()
	milvus := testkit.Milvus(t)
	address := testkit.FreeAddress(t)
	s := &server{url: "http://" + address, log: &bytes.Buffer{}}
	s.cmd = exec.Command(testkit.Program(t), "serve")
	s.cmd.Env = append(os.Environ(), "DATABASE_URL="+d.AppURL, "MILVUS_ADDRESS="+milvus.Addr, "MILVUS_USERNAME="+milvus.User,
		"MILVUS_PASSWORD="+milvus.Password, "MNEMO_MODEL_DIR="+testkit.ModelDir(t), "MNEMO_ONNXRUNTIME="+testkit.ONNXRuntime(t), "MNEMO_LISTEN="+address, "MNEMO_METRICS_LISTEN=127.0.0.1:0")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%.8000s", s.url, s.log)
		}
	})
	eventually(t, time.Minute, func() string {
		response, err := http.Get(s.url + "/readyz")
		if err != nil {
			return err.Error()
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
	return s
}

// kill kills the process with SIGKILL.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak memory of the process in MiB.
func (s *server) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := peakLine.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kb, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// call sends a request, checks the status and decodes the response into out.
func (s *server) call(t *testing.T, token, method, path, contentType string, body io.Reader, status int, out any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, path, response.StatusCode, raw, err, status)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, raw, err)
	}
}

// upload streams a file and returns the import's id.
func (s *server) upload(t *testing.T, token, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		part, err := form.CreateFormFile("file", "export.zip")
		if err == nil {
			_, err = io.Copy(part, f)
		}
		if err == nil {
			err = form.Close()
		}
		w.CloseWithError(err)
	}()
	var out struct{ ImportID string }
	s.call(t, token, "POST", "/api/chat-history/import", form.FormDataContentType(), r, http.StatusAccepted, &out)
	return out.ImportID
}

// progress is the response for an import.
type progress struct {
	Status                                                                 string
	Total, Imported, Updated, Skipped, Unchanged, Blocked, Failed, Indexed int
	Errors                                                                 []struct{ Conversation, Error string }
}

func (s *server) progress(t *testing.T, token, id string) progress {
	t.Helper()
	var p progress
	s.call(t, token, "GET", "/api/chat-history/imports/"+id, "", nil, http.StatusOK, &p)
	return p
}

// eventually polls until check returns "", and fails with its last result.
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not in %s: %s", within, problem)
		case <-tick.C:
		}
	}
}
