package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// maxMessage limits how much of an endpoint's message an error repeats, in bytes:
// the message may quote the request.
const maxMessage = 200

// StatusError is a response with a status other than 2xx.
type StatusError struct {
	Status  int    // HTTP status
	Message string // the endpoint's message, shortened; may be empty
}

// newStatusError reads the message from a response. It removes the API key,
// which some endpoints quote when they reject it.
func newStatusError(status int, body []byte, key string) *StatusError {
	var content struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &content) // a proxy's response is often not JSON
	message := content.Error.Message
	if key != "" {
		message = strings.ReplaceAll(message, key, "(key)")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return &StatusError{Status: status, Message: message}
}

// Error returns the status and the endpoint's message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Temporary reports whether the same request may succeed later. Otherwise the
// configuration or the request is wrong.
func (e *StatusError) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// Refused reports whether the endpoint rejected the content of the request: another
// content may succeed.
func (e *StatusError) Refused() bool {
	return e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge || e.Status == http.StatusUnprocessableEntity
}
