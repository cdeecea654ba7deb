package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

// client calls servers with a token.
type client struct {
	token string
	http  *http.Client
}

func newClient(token string) *client {
	return &client{token: token, http: &http.Client{Timeout: 10 * time.Second}}
}

// call sends a request and returns the status; an error if no complete response was received.
func (c *client) call(ctx context.Context, method, url, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// create stores a memory and returns its id.
func (c *client) create(t *testing.T, url, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/memory", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var created struct{ MemoryID string }
	if err := json.NewDecoder(res.Body).Decode(&created); err != nil || created.MemoryID == "" {
		t.Fatalf("create memory: %s, %v", res.Status, err)
	}
	return created.MemoryID
}

// tokenOf waits for the token of a user.
func tokenOf(t *testing.T, i *installation.Installation, tenant, user string) string {
	t.Helper()
	var token string
	installation.Eventually(t, installation.Patience, func() string {
		if token = i.Token(t, tenant, user); token == "" {
			return fmt.Sprintf("user %s of %s has no token", user, tenant)
		}
		return ""
	})
	return token
}
