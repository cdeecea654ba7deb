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

	"github.com/mnemo-dev/mnemo/api/client"
)

// What the process ends with, for scripts.
const (
	exitFailed = 1 // it did not work, and would not work the same way again
	exitUsage  = 2 // the command line is wrong
	exitToken  = 3 // the token is not valid
	exitBusy   = 4 // the server is away or busy: the same again later may work
	exitPartly = 5 // an import left conversations out
)

// terminal is where a user's commands print.
type terminal struct {
	out, err io.Writer
	// live: err is a person's terminal, where a line may be drawn over.
	live bool
}

func openTerminal() terminal {
	info, err := os.Stderr.Stat()
	return terminal{out: os.Stdout, err: os.Stderr, live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// quiet prints only what was asked for.
func (t terminal) quiet() terminal { return terminal{out: t.out} }

// note tells a person something beside the answer.
func (t terminal) note(format string, args ...any) {
	if t.err != nil {
		fmt.Fprintf(t.err, "mnemo: "+format+"\n", args...)
	}
}

// remoteFlags say which server a user's commands speak to.
type remoteFlags struct {
	URL   string `name:"url" env:"MNEMO_URL" required:"" help:"Where the API is, such as https://mnemo.example.com."`
	Token string `env:"MNEMO_TOKEN" required:"" help:"Token of a user, from the Secret its operator gave out or the dashboard. Better in the environment: others on the machine can read command lines."`
	JSON  bool   `name:"json" help:"Print JSON, for scripts."`
}

// open makes the client. Only what a request waits for is bounded: uploads and
// downloads take as long as they take.
func (f remoteFlags) open() (*client.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // it is one
	transport.ResponseHeaderTimeout = 5 * time.Minute
	c, err := client.New(f.URL, f.Token, client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	return c, nil
}

// printJSON prints an answer as the server gave it, indented.
func (t terminal) printJSON(v any) error {
	encoder := json.NewEncoder(t.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// remoteError is one of a command that speaks to a server as a user.
type remoteError struct{ error }

func (e *remoteError) Unwrap() error { return e.error }

// explain says what a person can do about an error, and what to exit with.
func explain(err error) (message string, code int) {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		return parse.Error(), exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted", exitFailed
	}
	if _, ok := errors.AsType[*remoteError](err); !ok {
		return err.Error(), exitFailed
	}
	if part, ok := errors.AsType[*leftOutError](err); ok {
		return part.Error(), exitPartly
	}
	if refused, ok := errors.AsType[*client.StatusError](err); ok {
		return explainStatus(refused)
	}
	var network net.Error
	if address, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Sprintf("%s cannot be reached (%v): is the server up, and MNEMO_URL right?", hostOf(address.URL), address.Err), exitBusy
	}
	if errors.As(err, &network) && network.Timeout() {
		return err.Error(), exitBusy
	}
	return err.Error(), exitFailed
}

func explainStatus(e *client.StatusError) (message string, code int) {
	switch e.Status {
	case http.StatusUnauthorized:
		return "the server does not know this token: set MNEMO_TOKEN to the one in the user's Secret, or make a new one in the dashboard", exitToken
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s (again in %s)", e.Message, e.RetryAfter), exitBusy
		}
		return e.Message, exitBusy
	case http.StatusInternalServerError:
		return fmt.Sprintf("%s Tell whoever operates it the request id %s.", e.Message, e.RequestID), exitFailed
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
