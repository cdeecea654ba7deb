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
	message := messageOf(body)
	if key != "" {
		message = strings.ReplaceAll(message, key, "(key)")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return &StatusError{Status: status, Message: message}
}

// messageOf returns the message in the body of an error: {"error":{"message":"…"}} of OpenAI,
// {"error":"…"} of text-embeddings-inference, {"message":"…"} of Cohere, or {"detail":"…"} of Jina.
// It returns "" for other bodies, such as a list of errors with their inputs.
func messageOf(body []byte) string {
	var content struct {
		Error   any `json:"error"`
		Message any `json:"message"`
		Detail  any `json:"detail"`
	}
	_ = json.Unmarshal(body, &content) // a proxy's response is often not JSON
	for _, value := range []any{content.Error, content.Message, content.Detail} {
		if object, ok := value.(map[string]any); ok {
			value = object["message"]
		}
		if text, ok := value.(string); ok && text != "" {
			return text
		}
	}
	return ""
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
