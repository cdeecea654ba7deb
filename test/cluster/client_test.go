package cluster_test

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// connect returns a client of the release that retries as the API documentation says.
func connect(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(cluster.env["MNEMO_URL"], token, client.WithHTTPClient(&http.Client{Transport: retrying{}}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// retrying is a transport that repeats requests after a 503 response, for example when the
// database has closed its connections. An idempotency key makes this safe for writes.
type retrying struct{}

// RoundTrip implements http.RoundTripper.
func (retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r.Body = body
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return resp, err
		}
		_ = resp.Body.Close()
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(time.Second):
		}
	}
}
