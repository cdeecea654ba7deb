package e2e_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collected holds the spans from the platform by trace.
type collected struct {
	url string

	mu    sync.Mutex
	names map[string][]string
	raw   strings.Builder // everything that was exported
}

// collect starts a collector for OTLP over HTTP, which runs until the tests end.
func collect() (*collected, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collected{url: "http://" + l.Addr().String(), names: map[string][]string{}}
	go http.Serve(l, http.HandlerFunc(c.take)) // it ends with the tests
	return c, nil
}

func (c *collected) take(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(raw, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(raw)
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				id := hex.EncodeToString(span.TraceId)
				c.names[id] = append(c.names[id], scope.Scope.Name+": "+span.Name)
			}
		}
	}
}

// all returns everything that was exported.
func (c *collected) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// TestOneTrace checks that a trace contains the spans of both stores and of the job
// that the request enqueued, and that the request duration has an exemplar.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	applyTenant(t, "traced", "")
	outgrow(t, "traced")
	token := secret(t, "traced", "alice", "token")
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	send := func(method, path string, body any) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, platform.env["MNEMO_URL"]+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-"+id+"-00f067aa0ba902b7-01") // the client keeps it
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s", method, path, res.Status)
		}
	}
	const text = "2026-05-03 The lighthouse was painted red."
	send("POST", "/api/memory", map[string]any{"text": text})
	send("GET", "/api/v2/memory?query=lighthouse", nil)
	eventually(t, time.Minute, func() string {
		platform.traces.mu.Lock()
		defer platform.traces.mu.Unlock()
		all := strings.Join(platform.traces.names[id], "\n") + "\n"
		for _, want := range []string{
			"POST /api/memory\n", "GET /api/v2/memory\n", "otelpgx: ", ": job index.sync\n", "MilvusService/Upsert\n",
			": auth\n", ": embed\n", ": lexical\n", ": hydrate\n",
		} {
			if !strings.Contains(all, want) {
				return "the trace has no span " + strings.TrimSpace(want) + ", only\n" + all
			}
		}
		if strings.Contains(all, "lighthouse") {
			t.Error("the trace contains user data")
		}
		return ""
	})

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, platform.env["MNEMO_METRICS_URL"], nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(raw, []byte(`# {trace_id="`+id+`"}`)) {
		t.Errorf("no exemplar of the trace in the metrics: %v", err)
	}
}
