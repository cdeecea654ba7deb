package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// providerValues creates the Secret of an identity provider's client and returns the chart
// values that configure it. No test calls the provider.
func providerValues(t *testing.T) []string {
	t.Helper()
	kubectl(t, "", "create", "secret", "generic", "example-client", "--namespace", namespace, "--from-literal=client-secret=example")
	return []string{
		"oidc.providers[0].name=Example", "oidc.providers[0].issuer=https://id.example.test",
		"oidc.providers[0].clientId=mnemo", "oidc.providers[0].existingSecret=example-client",
	}
}

// signInOffersProvider waits until the sign-in page offers the configured provider.
func signInOffersProvider(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.env["MNEMO_URL"]+"/sign-in", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(page), "Sign in with Example") {
			return fmt.Sprintf("sign-in page without the provider: %s, %v\n%s", res.Status, err, page)
		}
		return ""
	})
}
