package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/mnemo-dev/mnemo/api/client"
)

// Exit codes of the process.
const (
	exitFailed  = 1 // the command failed and would fail again
	exitUsage   = 2 // the command line is invalid
	exitToken   = 3 // the token is invalid
	exitBusy    = 4 // the server is unavailable or busy; a retry may succeed
	exitPartial = 5 // an import finished without some conversations
)

// terminal is the output of user commands.
type terminal struct {
	out, err io.Writer
	// live means that err is an interactive terminal, where lines can be redrawn.
	live bool
	// redirected means that out is a file or pipe.
	redirected bool
}

func openTerminal() terminal {
	t := terminal{
		out: os.Stdout, err: os.Stderr,
		live: term.IsTerminal(int(os.Stderr.Fd())), redirected: isFileOrPipe(os.Stdout),
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		t.out = printableWriter{os.Stdout}
	}
	return t
}

func isFileOrPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// quiet suppresses notes and progress.
func (t terminal) quiet() terminal { return terminal{out: t.out} }

// note prints a message to standard error.
func (t terminal) note(format string, args ...any) {
	if t.err != nil {
		fmt.Fprintf(t.err, "mnemo: %s\n", printable(fmt.Sprintf(format, args...)))
	}
}

// remoteFlags configure the server of user commands.
type remoteFlags struct {
	URL   string `name:"url" env:"MNEMO_URL" help:"URL of the API, such as https://mnemo.example.com."`
	Token string `env:"MNEMO_TOKEN" help:"Your access token, from the dashboard or your administrator. Prefer the environment variable: other users of the machine can read command lines."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// open returns the client. Only the wait for response headers has a timeout:
// uploads and downloads may take any time.
func (f remoteFlags) open() (*client.Client, error) {
	l, err := f.login()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // documented to be one
	transport.ResponseHeaderTimeout = 5 * time.Minute
	c, err := client.New(l.URL, l.Token, client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	return c, nil
}

// printJSON prints a response as indented JSON.
func (t terminal) printJSON(v any) error {
	encoder := json.NewEncoder(t.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// remoteError is an error of a user command.
type remoteError struct{ error }

func (e *remoteError) Unwrap() error { return e.error }

// usageError is an error for a missing setting.
type usageError string

func (e usageError) Error() string { return string(e) }

// explain returns a message that says what to do about an error, and the exit
// code.
func explain(err error) (message string, code int) {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		return parse.Error(), exitUsage
	}
	if usage, ok := errors.AsType[usageError](err); ok {
		return usage.Error(), exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted", exitFailed
	}
	if _, ok := errors.AsType[*remoteError](err); !ok {
		return err.Error(), exitFailed
	}
	if part, ok := errors.AsType[*incompleteError](err); ok {
		return part.Error(), exitPartial
	}
	if refused, ok := errors.AsType[*client.StatusError](err); ok {
		return explainStatus(refused)
	}
	var network net.Error
	if address, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Sprintf("cannot reach %s (%v): check that the server is running and MNEMO_URL is correct", hostOf(address.URL), address.Err), exitBusy
	}
	if errors.As(err, &network) && network.Timeout() {
		return err.Error(), exitBusy
	}
	return err.Error(), exitFailed
}

func explainStatus(e *client.StatusError) (message string, code int) {
	switch e.Status {
	case http.StatusUnauthorized:
		return "invalid token: set MNEMO_TOKEN to a valid one, or create a new one in the dashboard", exitToken
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s (retry in %s)", e.Message, e.RetryAfter), exitBusy
		}
		return e.Message, exitBusy
	case http.StatusInternalServerError:
		return fmt.Sprintf("%s Report the request ID %s to your administrator.", e.Message, e.RequestID), exitFailed
	}
	return e.Message, exitFailed
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the server"
	}
	return u.Host
}
