package dashboard

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
)

// ReadProviders reads a JSON array of providers from a file. The error names
// the entry and what it takes.
func ReadProviders(path string) ([]*Provider, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read identity providers: %w", err)
	}
	var out []*Provider
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s must be a JSON array of {name, issuer, clientId, clientSecret}: %w", path, err)
	}
	for i, p := range out {
		if p == nil || p.Name == "" || p.ClientID == "" {
			return nil, fmt.Errorf("%s: entry %d needs name, issuer and clientId", path, i)
		}
		if u, err := url.Parse(p.Issuer); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, fmt.Errorf("%s: issuer of %s must be the https:// URL of the identity provider", path, p.Name)
		}
	}
	return out, nil
}
