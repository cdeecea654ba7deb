package faults_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

// embedder is an embedding endpoint that can fail.
type embedder struct {
	url   string
	model http.Handler

	mu    sync.Mutex
	fault http.Handler // nil: none
}

func newEmbedder(t *testing.T) *embedder {
	t.Helper()
	e := &embedder{model: installation.Embeddings()}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// ServeHTTP embeds texts unless there is a fault.
func (e *embedder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The server notices that a client gave up only after it has read the body.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	e.mu.Lock()
	h := e.fault
	e.mu.Unlock()
	if h == nil {
		h = e.model
	}
	h.ServeHTTP(w, r)
}

func (e *embedder) set(fault http.Handler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = fault
}

// faults returns the faults of the endpoint.
func (e *embedder) faults() map[string]http.Handler {
	status := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		})
	}
	return map[string]http.Handler{
		"slow": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(2 * time.Second):
				e.model.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		}),
		"hangs":            http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		"status 500":       status(http.StatusInternalServerError, `{"error":{"message":"boom"}}`),
		"status 429":       status(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`),
		"refuses":          status(http.StatusBadRequest, `{"error":{"message":"no"}}`),
		"no vectors":       status(http.StatusOK, `{"object":"list","data":[]}`),
		"wrong dimensions": status(http.StatusOK, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,2,3]}]}`),
		"not JSON":         status(http.StatusOK, `<html>`),
	}
}
