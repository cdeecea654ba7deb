package embed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
)

// maxMessage bounds how much of an endpoint's own message is passed on, in bytes:
// it may quote the texts.
const maxMessage = 200

// StatusError is an endpoint's answer other than 200.
type StatusError struct {
	Status  int    // HTTP status
	Message string // the endpoint's own words, shortened; may be empty
}

// Error returns the status and the endpoint's message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Temporary reports whether the same request may succeed later; otherwise the
// configuration or the request is wrong.
func (e *StatusError) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// explain turns the library's error into one that says what happened and keeps
// the key to itself: some endpoints quote it when they refuse it.
func (o *OpenAI) explain(ctx context.Context, answer *http.Response, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", o.config.Timeout, err)
	}
	if answer == nil || answer.StatusCode < http.StatusBadRequest || ctx.Err() != nil {
		return err
	}
	status := &StatusError{Status: answer.StatusCode}
	if api, ok := errors.AsType[*openai.Error](err); ok {
		status.Message = api.Message
	}
	if o.config.APIKey != "" {
		status.Message = strings.ReplaceAll(status.Message, o.config.APIKey, "(key)")
	}
	if len(status.Message) > maxMessage {
		status.Message = strings.ToValidUTF8(status.Message[:maxMessage], "") + "…"
	}
	return status
}
