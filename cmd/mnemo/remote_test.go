package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	unreachable := fmt.Errorf("list Tenants: %w", &url.Error{Op: "Get", URL: "https://10.96.0.1:443/apis", Err: errors.New("connection refused")})
	for _, tt := range []struct {
		err     error
		message string
		code    int
	}{
		{unreachable, unreachable.Error(), exitFailed}, // MNEMO_URL does not apply to the operator,
		{&remoteError{unreachable}, "cannot reach 10.96.0.1:443 (connection refused): check that the server is running and MNEMO_URL is correct", exitBusy},
		{&remoteError{errors.New("file exists")}, "file exists", exitFailed},
		{&remoteError{&url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}}, "interrupted", exitFailed},
		{fmt.Errorf("migrate: %w", context.Canceled), "interrupted", exitFailed},
	} {
		if message, code := explain(tt.err); message != tt.message || code != tt.code {
			t.Errorf("explain(%v) = %q, %d; want %q, %d", tt.err, message, code, tt.message, tt.code)
		}
	}
}

func TestSaveDistinguishesReadAndWriteErrors(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/export.zip"
	err := save(name, download{io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))})
	if err == nil || !strings.Contains(err.Error(), "export incomplete") {
		t.Errorf("truncated response: %v, want an error that says so", err)
	}
	if err := save(name+"/nowhere", download{strings.NewReader("complete")}); err == nil || strings.Contains(err.Error(), "export incomplete") {
		t.Errorf("file that cannot be written: %v, want a write error", err)
	}
	if err := save(name, download{strings.NewReader("complete")}); err != nil {
		t.Error(err)
	}
}

func TestWithScheme(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"localhost:8080":            "http://localhost:8080",
		"127.0.0.1:8080":            "http://127.0.0.1:8080",
		"[::1]:8080":                "http://[::1]:8080",
		"mnemo.example.com":         "https://mnemo.example.com",
		"mnemo.example.com:8443/a/": "https://mnemo.example.com:8443/a",
		"http://mnemo.example.com/": "http://mnemo.example.com",
		"":                          "",
	} {
		if got := withScheme(address); got != want {
			t.Errorf("withScheme(%q) = %q, want %q", address, got, want)
		}
	}
}

// A stored token is sent only to the server that it was stored for.
func TestStoredLogin(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	stored := login{URL: "https://mnemo.example.com", Token: "mn_stored"}
	if _, err := stored.save(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		flags remoteFlags
		want  login
	}{
		"Stored":      {remoteFlags{}, stored},
		"SameServer":  {remoteFlags{URL: "mnemo.example.com/"}, stored},
		"OtherToken":  {remoteFlags{Token: "mn_other"}, login{URL: stored.URL, Token: "mn_other"}},
		"OtherServer": {remoteFlags{URL: "https://other.example.com"}, login{}},
	} {
		got, err := tc.flags.login()
		if got != tc.want {
			t.Errorf("%s: login = %+v, want %+v", name, got, tc.want)
		}
		if _, refused := errors.AsType[usageError](err); refused != (tc.want == login{}) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
