package embed

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/openai"
)

const testKey = "sk-very-secret"

// endpoint is an HTTP server for /v1/embeddings. The vector of a text is (its length, 1),
// not normalized, and the order of the response is reversed.
type endpoint struct {
	*httptest.Server
	requests atomic.Int32
	sizes    []int
	body     map[string]any // the last request's
	// before, if set, can respond instead of the endpoint, given the number of the
	// request from 1. It returns true if it did.
	before func(w http.ResponseWriter, r *http.Request, n int) bool
	base64 bool
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	n := int(e.requests.Add(1))
	if e.before != nil && e.before(w, r, n) {
		return
	}
	if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+testKey {
		http.Error(w, `{"error":{"message":"wrong path or key"}}`, http.StatusUnauthorized)
		return
	}
	var request struct {
		Input []string `json:"input"`
	}
	var raw json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&raw)
	_ = json.Unmarshal(raw, &request)
	e.body = nil
	_ = json.Unmarshal(raw, &e.body)
	e.sizes = append(e.sizes, len(request.Input))
	var data []any
	for i, text := range slices.Backward(request.Input) {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": e.encode(float32(len(text)), 1)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": "m", "data": data})
}

func (e *endpoint) encode(values ...float32) any {
	if !e.base64 {
		return values
	}
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func (e *endpoint) client(t *testing.T, change func(*OpenAIConfig)) *OpenAI {
	t.Helper()
	config := OpenAIConfig{BaseURL: e.URL + "/v1", APIKey: testKey, Model: "m", Dimensions: 2}
	if change != nil {
		change(&config)
	}
	o, err := NewOpenAI(config)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func answer(w http.ResponseWriter, status int, body string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
	return true
}

func TestOpenAIEmbed(t *testing.T) {
	t.Parallel()
	for _, encoded := range []bool{false, true} {
		e := newEndpoint(t)
		e.base64 = encoded
		o := e.client(t, nil)
		got, err := o.Embed(t.Context(), []string{"abc", "", "é"})
		if err != nil {
			t.Fatal(err)
		}
		unit := func(x float64) []float32 {
			length := math.Hypot(x, 1)
			return []float32{float32(x / length), float32(1 / length)}
		}
		want := [][]float32{unit(3), unit(1), unit(2)} // the empty text is sent as a space
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("base64 %v: vectors (-want +got):\n%s", encoded, diff)
		}
		if _, sent := e.body["dimensions"]; sent {
			t.Error("dimensions were sent although not configured")
		}
		if o.Model() != "m" || o.Dimensions() != 2 {
			t.Errorf("model %q, %d dimensions", o.Model(), o.Dimensions())
		}
	}
}

func TestOpenAIRequestDimensions(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	o := e.client(t, func(c *OpenAIConfig) { c.RequestDimensions = true; c.BaseURL += "/" })
	if _, err := o.Embed(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if e.body["dimensions"] != 2.0 {
		t.Errorf("sent dimensions %v, want 2", e.body["dimensions"])
	}
}

func TestOpenAIBatches(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	texts := make([]string, 300)
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
	}
	got, err := e.client(t, nil).Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{128, 128, 44}, e.sizes); diff != "" {
		t.Errorf("request sizes (-want +got):\n%s", diff)
	}
	for i, v := range got {
		if ratio := float64(v[0] / v[1]); math.Abs(ratio-float64(i+1)) > 0.01 {
			t.Errorf("text %d has the vector of a text of length %v", i, ratio)
		}
	}
	e.sizes = nil
	if got, err := e.client(t, nil).Embed(t.Context(), nil); err != nil || len(got) != 0 || e.sizes != nil {
		t.Errorf("Embed(nil) = %v, %v after requests %v; want nothing", got, err, e.sizes)
	}
}

func TestOpenAIRetries(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		e := newEndpoint(t)
		e.before = func(w http.ResponseWriter, _ *http.Request, n int) bool {
			w.Header().Set("Retry-After-Ms", "1")
			return n <= 2 && answer(w, status, `{"error":{"message":"slow down"}}`)
		}
		if _, err := e.client(t, nil).Embed(t.Context(), []string{"a"}); err != nil {
			t.Errorf("after %d twice: %v", status, err)
		}
		if n := e.requests.Load(); n != 3 {
			t.Errorf("after %d twice: %d requests, want 3", status, n)
		}
	}
}

func TestOpenAIErrors(t *testing.T) {
	t.Parallel()
	vectors := func(list string) string { return `{"object":"list","data":[` + list + `]}` }
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   string
		calls  int32 // requests made
	}{
		"Refused":     {"a wrong key is not retried", 401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `."}}`, "status 401 Unauthorized: Incorrect API key provided: (key)", 1},
		"BadRequest":  {"a text that is too long is not retried either", 400, `{"error":{"message":"` + strings.Repeat("é", 300) + `"}}`, "status 400 Bad Request: é", 1},
		"NotFound":    {"a wrong base URL often has no JSON", 404, `<html>`, "status 404 Not Found", 1},
		"Overloaded":  {"429 on every attempt", 429, `{"error":{"message":"rate limit"}}`, "status 429 Too Many Requests: rate limit", 2},
		"BadGateway":  {"a proxy's page", 502, `<html>`, "status 502 Bad Gateway", 2},
		"BrokenJSON":  {"a truncated response", 200, `{"object":"list","data":[{"emb`, "decode response", 1},
		"Null":        {"an empty response", 200, `null`, "the response is empty", 1},
		"OtherJSON":   {"unrelated JSON", 200, `{"hello":1}`, "0 embeddings, want 2", 1},
		"TooFew":      {"a text is missing", 200, vectors(`{"index":0,"embedding":[1,2]}`), "1 embeddings, want 2", 1},
		"Dimensions":  {"another model", 200, vectors(`{"index":0,"embedding":[1,2,3]},{"index":1,"embedding":[1,2,3]}`), "3 dimensions, but 2 are configured", 1},
		"SameIndex":   {"a duplicate index", 200, vectors(`{"index":1,"embedding":[1,2]},{"index":1,"embedding":[1,2]}`), "indexes", 1},
		"OutOfRange":  {"an index out of range", 200, vectors(`{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}`), "indexes", 1},
		"Zero":        {"a zero vector cannot be normalized", 200, vectors(`{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,2]}`), "is zero or not finite", 1},
		"NotBase64":   {"a string that is not base64", 200, vectors(`{"index":0,"embedding":"?"},{"index":1,"embedding":[1,2]}`), "neither numbers nor base64", 1},
		"NullNumbers": {"a runtime's NaN", 200, vectors(`{"index":0,"embedding":[null,null]},{"index":1,"embedding":[1,2]}`), "is zero or not finite", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.before = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				w.Header().Set("Retry-After-Ms", "1")
				return answer(w, tc.status, tc.body)
			}
			_, err := e.client(t, func(c *OpenAIConfig) { c.Retries = 1 }).Embed(t.Context(), []string{"a", "b"})
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			for _, want := range []string{tc.want, e.URL + "/v1/embeddings", "model m"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q lacks %q", tc.reason, err, want)
				}
			}
			if strings.Contains(fmt.Sprintf("%+v", err), testKey) {
				t.Errorf("%s: error %q contains the key", tc.reason, err)
			}
			if len(err.Error()) > 500 {
				t.Errorf("%s: error %q is too long", tc.reason, err)
			}
			if n := e.requests.Load(); n != tc.calls {
				t.Errorf("%s: %d requests, want %d", tc.reason, n, tc.calls)
			}
			status, ok := errors.AsType[*openai.StatusError](err)
			if ok != (tc.status != 200) || ok && (status.Status != tc.status || status.Temporary() != (tc.calls > 1)) {
				t.Errorf("%s: status error %+v", tc.reason, status)
			}
			refusal, ok := errors.AsType[interface {
				error
				Refused() bool
			}](err)
			if got, want := ok && refusal.Refused(), slices.Contains([]string{"BadRequest", "Zero", "NullNumbers"}, name); got != want {
				t.Errorf("%s: the error refuses a text: %t, want %t", tc.reason, got, want)
			}
		})
	}
}

func TestOpenAISlow(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	e.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		_, _ = http.MaxBytesReader(nil, r.Body, 1<<20).Read(make([]byte, 1<<10)) // lets the server notice when the client disconnects
		<-r.Context().Done()
		return true
	}
	o := e.client(t, func(c *OpenAIConfig) { c.Timeout = 20 * time.Millisecond })
	_, err := o.Embed(t.Context(), []string{"a"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("error %v, want the configured timeout", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = e.client(t, nil).Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the caller's deadline", err)
	}
}

func TestOpenAIUnreachable(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	o := e.client(t, func(c *OpenAIConfig) { c.Retries = -1 })
	e.Close()
	_, err := o.Embed(t.Context(), []string{"a"})
	if err == nil || !strings.Contains(err.Error(), e.URL+"/v1/embeddings") {
		t.Errorf("error %v, want one that names the endpoint", err)
	}
}

func TestNewOpenAIInvalid(t *testing.T) {
	t.Parallel()
	_, err := NewOpenAI(OpenAIConfig{BaseURL: "api.openai.com/v1", APIKey: testKey})
	for _, want := range []string{"base URL", "model", "dimensions"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	o, err := NewOpenAI(OpenAIConfig{BaseURL: "https://user:pass@host.test/v1?key=x", Model: "m", Dimensions: 1, Retries: -1})
	if err != nil || o.client.Endpoint(route) != "https://host.test/v1/embeddings" {
		t.Errorf("endpoint %q, error %v: want one without credentials", o.client.Endpoint(route), err)
	}
}
