package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// configuredProvider is an entry of the providers file.
type configuredProvider struct {
	Name             string `json:"name"`
	Issuer           string `json:"issuer"`
	ClientID         string `json:"clientId"`
	ClientSecret     string `json:"clientSecret"`
	ClientSecretFile string `json:"clientSecretFile"` // alternative to ClientSecret

	RequireHostedDomain bool `json:"requireHostedDomain"`
	EndSession          bool `json:"endSession"`
	NoAuthTime          bool `json:"noAuthTime"`

	PlatformAdministrators []string `json:"platformAdministrators"`
}

// ReadProviders reads a JSON array of providers from a file.
func ReadProviders(path string) ([]*Provider, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read identity providers: %w", err)
	}
	var entries []configuredProvider
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields() // a misspelled secret would be ignored
	if err := decoder.Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s must be a JSON array of {name, issuer, clientId, clientSecret or clientSecretFile}: %w", path, err)
	}
	out := make([]*Provider, 0, len(entries))
	for i, e := range entries {
		if e.Name == "" || e.ClientID == "" {
			return nil, fmt.Errorf("%s: entry %d needs name, issuer and clientId", path, i)
		}
		if u, err := url.Parse(e.Issuer); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, fmt.Errorf("%s: issuer of %s must be the https:// URL of the identity provider", path, e.Name)
		}
		if i := slices.IndexFunc(e.PlatformAdministrators, func(a string) bool { return !tenant.IsEmail(a) }); i >= 0 {
			return nil, fmt.Errorf("%s: platformAdministrators of %s must be email addresses, not %q", path, e.Name, e.PlatformAdministrators[i])
		}
		secret, err := e.secret()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, e.Name, err)
		}
		out = append(out, &Provider{Name: e.Name, Issuer: e.Issuer, ClientID: e.ClientID, ClientSecret: secret,
			RequireHostedDomain: e.RequireHostedDomain, EndSession: e.EndSession, NoAuthTime: e.NoAuthTime,
			PlatformAdministrators: e.PlatformAdministrators})
	}
	return out, nil
}

// secret returns the client secret; a public client has none.
func (e configuredProvider) secret() (string, error) {
	if e.ClientSecretFile == "" {
		return e.ClientSecret, nil
	}
	if e.ClientSecret != "" {
		return "", fmt.Errorf("clientSecret and clientSecretFile must not be used together")
	}
	raw, err := os.ReadFile(e.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("read clientSecretFile: %w", err)
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", fmt.Errorf("clientSecretFile %s is empty", e.ClientSecretFile)
	}
	return secret, nil
}
