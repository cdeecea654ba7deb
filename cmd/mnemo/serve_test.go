package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// blockedTokens finds no token, and answers only when the workers are asked to stop.
type blockedTokens struct {
	tenant.TokenStore
	asked, stopped chan struct{}
}

func (b blockedTokens) Identify(context.Context, tenant.Hash) (tenant.Identity, error) {
	close(b.asked)
	<-b.stopped
	return tenant.Identity{}, fault.New(fault.Unauthorized, "unknown token")
}

// Stop implements stopper.
func (b blockedTokens) Stop(context.Context) error {
	close(b.stopped)
	return nil
}

// A request that lasts longer than the shutdown must not use up the time of the jobs: the workers stop while it is drained.
func TestShutdownStopsWorkersWhileRequestsDrain(t *testing.T) {
	t.Parallel()
	blocked := blockedTokens{asked: make(chan struct{}), stopped: make(chan struct{})}
	logs, writer := io.Pipe()
	log := slog.New(slog.NewJSONHandler(writer, nil))
	server := apiserver.New(apiserver.Config{Tokens: blocked, Log: log})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() {
		c := &serveCommand{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0"}
		listen := func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}
		served <- c.serve(ctx, server, listen, blocked, func(context.Context) error { return nil }, log)
	}()
	token, err := tenant.NewTokenOf(tenant.KeyToken, 0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	address := servedAddress(t, logs)
	answered := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/buckets", nil)
		if err != nil {
			answered <- err
			return
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-blocked.asked
	stop()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the request failed: %v", err)
	}
}

// servedAddress returns the address of the HTTP server from its log, and discards the rest of the log.
func servedAddress(t *testing.T, logs io.Reader) string {
	t.Helper()
	entries := json.NewDecoder(logs)
	for {
		var entry struct{ Msg, Address string }
		if err := entries.Decode(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, io.MultiReader(entries.Buffered(), logs)) }()
			return entry.Address
		}
	}
}
