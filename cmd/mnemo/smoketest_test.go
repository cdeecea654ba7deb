package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestSmokeTest(t *testing.T) {
	t.Parallel()
	var unprotected atomic.Bool // whether data is returned without a token
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/buckets" && !unprotected.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	command := &smokeTestCommand{URL: server.URL + "/"}
	if err := command.Run(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("smoke test: %v", err)
	}
	unprotected.Store(true)
	if err := command.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "/api/buckets") {
		t.Errorf("smoke test of an unprotected server: %v, want an error that names /api/buckets", err)
	}
}
