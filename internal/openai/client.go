package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Config describes an endpoint.
type Config struct {
	// BaseURL precedes the path of each route, for example
	// https://api.openai.com/v1. Its query is ignored.
	BaseURL string
	// APIKey is sent as a bearer token, unless it is empty.
	APIKey string
	// Timeout limits each attempt; 0 means no limit. An attempt that reaches it
	// is not retried.
	Timeout time.Duration
	// Retries is the maximum number of retries after a broken connection or a
	// status that permits them.
	Retries int
	// MaxResponse limits the size of a response in bytes.
	MaxResponse int64
}

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
}

// maxIdle is the maximum number of idle connections to an endpoint. The default of 2 would make most
// concurrent requests over HTTP/1.1 open a connection, with a TLS handshake.
const maxIdle = 64

// httpClient is shared by all clients.
var httpClient = &http.Client{Transport: newTransport()}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // documented to be one
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, maxIdle
	return t
}

// New returns a client. It does not connect and reads nothing from the
// environment.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("base URL must be an http or https URL, for example https://api.openai.com/v1")
	}
	base.RawQuery, base.Fragment = "", ""
	return &Client{config: config, base: base}, nil
}

// Endpoint returns the URL of a route without credentials, for messages.
func (c *Client) Endpoint(route string) string {
	u := c.base.JoinPath(route)
	u.User = nil
	return u.String()
}

// Post sends body to a route as JSON and decodes the response into answer. The
// error of a response other than 2xx is a *[StatusError]; no error contains the
// API key.
func (c *Client) Post(ctx context.Context, route string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	for attempt := 0; ; attempt++ {
		again, err := c.attempt(ctx, route, content, answer)
		if err == nil || again == nil || attempt >= c.config.Retries {
			return err
		}
		delay, ok := again.delay(attempt)
		if !ok {
			return err
		}
		if wait(ctx, delay) != nil {
			return ctx.Err()
		}
	}
}

// attempt sends the request once. It returns a nil retry with an error if another
// attempt is not permitted.
func (c *Client) attempt(parent context.Context, route string, content []byte, answer any) (*retry, error) {
	ctx := parent
	if c.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(parent, c.config.Timeout)
		defer cancel()
	}
	again, err := c.exchange(ctx, route, content, answer)
	switch {
	case err == nil || ctx.Err() == nil:
		return again, err
	case parent.Err() != nil:
		return nil, parent.Err()
	default:
		return nil, fmt.Errorf("no answer within %v: %w", c.config.Timeout, ctx.Err())
	}
}

func (c *Client) exchange(ctx context.Context, route string, content []byte, answer any) (*retry, error) {
	resp, err := c.send(ctx, route, content)
	if err != nil {
		return &retry{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, c.config.MaxResponse)) // the status counts
		return retryOf(resp), newStatusError(resp.StatusCode, body, c.config.APIKey)
	}
	return nil, c.decode(resp.Body, answer)
}

func (c *Client) send(ctx context.Context, route string, content []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(route).String(), bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mnemo")
	if c.config.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	}
	return httpClient.Do(req)
}

// decode reads the body of a response into answer.
func (c *Client) decode(r io.Reader, answer any) error {
	body, err := io.ReadAll(io.LimitReader(r, c.config.MaxResponse+1))
	if err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	if int64(len(body)) > c.config.MaxResponse {
		return fmt.Errorf("the response is larger than %d bytes", c.config.MaxResponse)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
