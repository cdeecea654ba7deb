package openai

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Concurrent requests to an endpoint that speaks HTTP/1.1 use the connections of earlier ones.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	const parallel = 32
	var connections atomic.Int64
	var all *sync.WaitGroup // requests of a round that have not arrived
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		all.Done()
		all.Wait()
		_, _ = io.WriteString(w, `{}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client, err := New(Config{BaseURL: server.URL, MaxResponse: 100})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		all = &sync.WaitGroup{}
		all.Add(parallel)
		var round sync.WaitGroup
		for range parallel {
			round.Go(func() {
				var answer struct{}
				if err := client.Post(t.Context(), "embeddings", struct{}{}, &answer); err != nil {
					t.Error(err)
				}
			})
		}
		round.Wait()
	}
	if n := connections.Load(); n != parallel {
		t.Errorf("%d connections for 3 rounds of %d requests, want %d", n, parallel, parallel)
	}
}
