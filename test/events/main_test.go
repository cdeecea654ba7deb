package events_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

func TestMain(m *testing.M) { installation.Main(m) }

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
