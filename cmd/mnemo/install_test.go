package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// TestWaitsForTheSchema: what comes up together finds its order by itself. The
// migration waits for its role, and whoever waits for the schema for both.
func TestWaitsForTheSchema(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner, err := pgx.Connect(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	// As a database is that the last release left.
	if _, err := owner.Exec(t.Context(), "delete from goose_db_version where version_id = $1", postgres.SchemaVersion()); err != nil {
		t.Fatal(err)
	}
	said := &syncBuffer{written: make(chan struct{}, 100)}
	log := slog.New(slog.NewTextHandler(said, nil))
	if err := (&waitCommand{DatabaseURL: d.AppURL}).Run(t.Context(), log); err == nil || !strings.Contains(err.Error(), "run `mnemo migrate` first") {
		t.Fatalf("wait for no time: %v, want what to run", err)
	}
	done := make(chan error, 1)
	go func() { done <- (&waitCommand{DatabaseURL: d.AppURL, Within: time.Minute}).Run(t.Context(), log) }()
	select {
	case err := <-done:
		t.Fatalf("waited for nothing: %v", err)
	case <-said.written: // it says what it waits for
	}
	if _, err := owner.Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values ($1, true)", postgres.SchemaVersion()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("wait: %v", err)
	}
}

// syncBuffer takes log lines and tells of each.
type syncBuffer struct {
	bytes.Buffer
	written chan struct{}
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	defer func() { b.written <- struct{}{} }()
	return b.Buffer.Write(p)
}

func TestPatiently(t *testing.T) {
	t.Parallel()
	log, tries := slog.New(slog.DiscardHandler), 0
	err := patiently(t.Context(), log, time.Minute, func(context.Context) error {
		if tries++; tries < 2 {
			return http.ErrServerClosed
		}
		return nil
	})
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v, want a second one that does", tries, err)
	}
	tries = 0
	if err := patiently(t.Context(), log, 0, func(context.Context) error { tries++; return http.ErrServerClosed }); err == nil || tries != 1 {
		t.Errorf("%d tries, %v, want one that fails", tries, err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	var open atomic.Bool // whether data is given out without a token
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/buckets" && !open.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	probe := &probeCommand{URL: server.URL + "/"}
	if err := probe.Run(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("probe: %v", err)
	}
	open.Store(true)
	if err := probe.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "/api/buckets") {
		t.Errorf("probe of a server that asks for no token: %v, want it refused", err)
	}
}
