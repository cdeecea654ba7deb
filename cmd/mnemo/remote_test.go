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

// Only a command that speaks to a server as a user is told about MNEMO_URL: the
// operator's servers are others.
func TestExplain(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("list Tenants: %w", &url.Error{Op: "Get", URL: "https://10.96.0.1:443/apis", Err: errors.New("connection refused")})
	for _, tt := range []struct {
		err  error
		says string
		code int
	}{
		{away, away.Error(), exitFailed},
		{&remoteError{away}, "10.96.0.1:443 cannot be reached (connection refused): is the server up, and MNEMO_URL right?", exitBusy},
		{&remoteError{errors.New("file is there")}, "file is there", exitFailed},
		{&remoteError{&url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}}, "interrupted", exitFailed},
		{fmt.Errorf("migrate: %w", context.Canceled), "interrupted", exitFailed},
	} {
		if message, code := explain(tt.err); message != tt.says || code != tt.code {
			t.Errorf("%v: %q, %d; want %q, %d", tt.err, message, code, tt.says, tt.code)
		}
	}
}

// Whether the answer ended or the disk is full is not the same.
func TestSave(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/export.zip"
	err := save(name, download{io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))})
	if err == nil || !strings.Contains(err.Error(), "ended early") {
		t.Errorf("half an answer: %v", err)
	}
	if err := save(name+"/nowhere", download{strings.NewReader("whole")}); err == nil || strings.Contains(err.Error(), "ended early") {
		t.Errorf("a file that cannot be written: %v", err)
	}
	if err := save(name, download{strings.NewReader("whole")}); err != nil {
		t.Error(err)
	}
}
