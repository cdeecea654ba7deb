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

// maxError is how much of a refusal's body is read, bytes.
const maxError = 1 << 20

// Client speaks to a server as one user. Make it with New; it may be used by
// many goroutines at once.
type Client struct{ requests *Requests }

// New returns a client of the server at base, such as
// https://mnemo.example.com, that shows the token with each request.
func New(base, token string, options ...ClientOption) (*Client, error) {
	address, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("the server's address must be like https://mnemo.example.com, not %q", base)
	}
	show := WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
	requests, err := NewClient(base, append([]ClientOption{show}, options...)...)
	if err != nil {
		return nil, err
	}
	return &Client{requests: requests}, nil
}

// Answer is what a request was answered with.
type Answer[T any] struct {
	Body   T
	Header http.Header
}

// Degraded reports whether the answer was made without all of the vector store.
func (a *Answer[T]) Degraded() bool { return a.Header.Get("X-Degraded") == "vector" }

// StatusError is a refusal by the server.
type StatusError struct {
	Status      int
	Message     string        // a sentence a person can act on
	RejectedIDs []string      // of a bulk operation that was refused for them
	RequestID   string        // names the request in the server's log
	RetryAfter  time.Duration // when to try again; 0 when the server does not say
}

// Error returns the server's message.
func (e *StatusError) Error() string { return e.Message }

// StatusOf returns the status of a refusal, 0 for every other error.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// accept returns the response, or a *StatusError when it is no success.
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
	if out.Message == "" { // something between us and the server answered
		out.Message = "the server answered " + response.Status
	}
	return nil, out
}

// decode reads the answer of a request that succeeded.
func decode[T any](response *http.Response, err error) (*Answer[T], error) {
	response, err = accept(response, err)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	out := &Answer[T]{Header: response.Header}
	if err := json.NewDecoder(response.Body).Decode(&out.Body); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return out, nil
}
