package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

func TestWaitReturnsWhenTheSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner, err := pgx.Connect(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	// The state that the previous release leaves behind.
	if _, err := owner.Exec(t.Context(), "delete from goose_db_version where version_id = $1", postgres.SchemaVersion()); err != nil {
		t.Fatal(err)
	}
	logs := &logBuffer{written: make(chan struct{}, 100)}
	log := slog.New(slog.NewTextHandler(logs, nil))
	if err := (&waitCommand{DatabaseURL: d.AppURL}).Run(t.Context(), log); err == nil || !strings.Contains(err.Error(), "run `mnemo migrate` first") {
		t.Fatalf("wait with timeout 0: %v, want an error that names the command to run", err)
	}
	done := make(chan error, 1)
	go func() { done <- (&waitCommand{DatabaseURL: d.AppURL, Timeout: time.Minute}).Run(t.Context(), log) }()
	select {
	case err := <-done:
		t.Fatalf("wait returned before the migration: %v", err)
	case <-logs.written: // it logs what it waits for
	}
	if _, err := owner.Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values ($1, true)", postgres.SchemaVersion()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("wait: %v", err)
	}
}

// logBuffer collects log lines and signals each one.
type logBuffer struct {
	bytes.Buffer
	written chan struct{}
}

func (b *logBuffer) Write(p []byte) (int, error) {
	defer func() { b.written <- struct{}{} }()
	return b.Buffer.Write(p)
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timeout   time.Duration
		succeeds  int // the attempt that succeeds
		wantCalls int
		wantError bool
	}{
		"succeeds at the second attempt": {timeout: time.Minute, succeeds: 2, wantCalls: 2},
		"calls once without a timeout":   {timeout: 0, succeeds: 2, wantCalls: 1, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			err := retry(t.Context(), slog.New(slog.DiscardHandler), tt.timeout, func(context.Context) error {
				if calls++; calls < tt.succeeds {
					return errors.New("not ready")
				}
				return nil
			})
			if (err != nil) != tt.wantError {
				t.Errorf("error %v, want one: %v", err, tt.wantError)
			}
			if calls != tt.wantCalls {
				t.Errorf("%d calls, want %d", calls, tt.wantCalls)
			}
		})
	}
}
