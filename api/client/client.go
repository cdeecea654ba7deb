package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// maxError is the number of bytes that are read of an error response.
const maxError = 1 << 20

// Client calls the API as one user. It is safe for concurrent use. New returns
// one.
type Client struct{ requests *Requests }

// New returns a client of the server at base, such as
// https://mnemo.example.com. It sends the token with each request.
func New(base, token string, options ...ClientOption) (*Client, error) {
	address, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("parse base URL: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("base URL must be an http or https URL such as https://mnemo.example.com, not %q", base)
	}
	authorize := WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
	requests, err := NewClient(base, append([]ClientOption{authorize}, options...)...)
	if err != nil {
		return nil, err
	}
	return &Client{requests: requests}, nil
}

// Response is a successful response.
type Response[T any] struct {
	Body   T
	Header http.Header
}

// Degraded reports whether the response was computed without the complete
// vector index.
func (r *Response[T]) Degraded() bool { return r.Header.Get("X-Degraded") == "vector" }

// StatusError is an error response.
type StatusError struct {
	Status      int
	Message     string        // says what went wrong and how to fix it
	RejectedIDs []string      // the ids that a bulk operation rejected
	RequestID   string        // identifies the request in the server's log
	RetryAfter  time.Duration // delay before a retry; 0 if the server sets none
}

// Error returns the server's message.
func (e *StatusError) Error() string { return e.Message }

// StatusOf returns the HTTP status of a StatusError, 0 for other errors.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// accept returns the response, or a *StatusError unless the status is 2xx.
func accept(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	out := &StatusError{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		out.RetryAfter = time.Duration(seconds) * time.Second
	}
	var body Error
	if json.NewDecoder(io.LimitReader(response.Body, maxError)).Decode(&body) == nil {
		out.Message, out.RejectedIDs = body.Error, body.RejectedIds
	}
	if out.Message == "" { // from a proxy
		out.Message = "unexpected status " + response.Status
	}
	return nil, out
}

// decode decodes the body of a successful response.
func decode[T any](response *http.Response, err error) (*Response[T], error) {
	response, err = accept(response, err)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	out := &Response[T]{Header: response.Header}
	if err := json.NewDecoder(response.Body).Decode(&out.Body); err != nil {
		return nil, fmt.Errorf("decode response: %w", err)
	}
	return out, nil
}
