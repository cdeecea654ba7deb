package dashboard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
)

func TestReadProviders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty := write("secret", "from a file\n"), write("empty", "\n")
	tests := map[string]struct {
		file string
		want string   // part of the error
		got  []string // names, issuers, clients and secrets
	}{
		"each kind of secret": {
			file: `[{"name":"A","issuer":"https://a.test","clientId":"a","clientSecret":"said"},
				{"name":"B","issuer":"https://b.test","clientId":"b","clientSecretFile":"` + secret + `"},
				{"name":"C","issuer":"http://c.test:8080","clientId":"c"}]`,
			got: []string{"A https://a.test a said", "B https://b.test b from a file", "C http://c.test:8080 c "},
		},
		"administrators": {
			file: `[{"name":"A","issuer":"https://a.test","clientId":"a","platformAdministrators":["ops@a.test","eve@a.test"]}]`,
			got:  []string{"A https://a.test a  ops@a.test eve@a.test"},
		},
		"no address":              {file: `[{"name":"A","issuer":"https://a.test","clientId":"a","platformAdministrators":["ops"]}]`, want: "platformAdministrators of A must be email addresses"},
		"no providers":            {file: `[]`},
		"not an array":            {file: `{}`, want: "must be a JSON array"},
		"unknown field":           {file: `[{"name":"A","issuer":"https://a.test","clientId":"a","clientsecretfil":"x"}]`, want: "clientsecretfil"},
		"null entry":              {file: `[null]`, want: "entry 0 needs name"},
		"no client ID":            {file: `[{"name":"A","issuer":"https://a.test"}]`, want: "entry 0 needs name, issuer and clientId"},
		"issuer without a scheme": {file: `[{"name":"A","issuer":"a.test","clientId":"a"}]`, want: "issuer of A must be"},
		"both secrets":            {file: `[{"name":"A","issuer":"https://a.test","clientId":"a","clientSecret":"x","clientSecretFile":"y"}]`, want: "must not be used together"},
		"missing secret file":     {file: `[{"name":"A","issuer":"https://a.test","clientId":"a","clientSecretFile":"/nowhere"}]`, want: "/nowhere"},
		"empty secret file":       {file: `[{"name":"A","issuer":"https://a.test","clientId":"a","clientSecretFile":"` + empty + `"}]`, want: "is empty"},
	}
	for name, tt := range tests {
		path := write(strings.ReplaceAll(name, " ", "-")+".json", tt.file)
		providers, err := dashboard.ReadProviders(path)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want an error that says %q", name, err, tt.want)
		}
		var got []string
		for _, p := range providers {
			got = append(got, strings.Join(append([]string{p.Name, p.Issuer, p.ClientID, p.ClientSecret}, p.PlatformAdministrators...), " "))
		}
		if diff := cmp.Diff(tt.got, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
