package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

type smokeTestCommand struct {
	URL     string        `arg:"" help:"Base URL of the API, such as http://mnemo."`
	Timeout time.Duration `default:"30s" help:"How long to retry."`
}

// Run checks that the server is ready, serves its OpenAPI document, and refuses
// to return data without a token.
func (c *smokeTestCommand) Run(ctx context.Context, log *slog.Logger) error {
	base := strings.TrimSuffix(c.URL, "/")
	err := retry(ctx, log, c.Timeout, func(ctx context.Context) error {
		for _, request := range []struct {
			path   string
			status int
		}{{"/readyz", http.StatusOK}, {"/openapi.json", http.StatusOK}, {"/api/buckets", http.StatusUnauthorized}} {
			if err := expectStatus(ctx, base+request.path, request.status); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Println(base, "is ready, serves its OpenAPI document, and requires a token")
	return err
}

// expectStatus sends a GET request and returns an error unless the response has
// the status.
func expectStatus(ctx context.Context, url string, status int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("invalid URL: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // only adds detail to the error
		return fmt.Errorf("GET %s: status %s, want %d: %s", url, res.Status, status, body)
	}
	return nil
}
