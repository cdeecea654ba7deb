package tenant_test

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// FuzzToken: a text has at most one kind, and any change of a character makes it none.
func FuzzToken(f *testing.F) {
	for _, kind := range []tenant.TokenKind{tenant.APIToken, tenant.AccessToken, tenant.RefreshToken, tenant.Code} {
		token, err := tenant.NewTokenOf(kind, 0xfed, strings.NewReader(strings.Repeat("seed", 100)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(token, 9)
		f.Add(token+"\n", 0)
	}
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, at int) {
		kinds := 0
		if cell, ok := tenant.CellOf(s); ok && (cell < 0 || cell > tenant.MaxDatabaseCell) {
			t.Errorf("the cell of %q is %d", s, cell)
		}
		for _, kind := range []tenant.TokenKind{tenant.APIToken, tenant.AccessToken, tenant.RefreshToken, tenant.Code} {
			if !kind.Is(s) {
				continue
			}
			kinds++
			if at < 0 || at >= len(s) {
				continue
			}
			changed := []byte(s)
			changed[at] ^= 1
			if kind.Is(string(changed)) {
				t.Errorf("both %q and %q are a token of kind %s", s, changed, kind)
			}
		}
		if kinds > 1 || kinds == 1 && strings.ContainsAny(s, " \r\n\x00") {
			t.Errorf("%q is a token of %d kinds", s, kinds)
		}
	})
}

// FuzzSignInName: a name is one namespace, one tenant and one user.
func FuzzSignInName(f *testing.F) {
	for _, s := range []string{"default/acme/alice", " a/b/c ", "a/b", "a//c", "a/b/c/d", "A/b/c", "a/b/../c", "a/b/c\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, ok := tenant.ParseSignInName(s)
		if !ok {
			return
		}
		if again, ok := tenant.ParseSignInName(name.String()); !ok || again != name {
			t.Errorf("%q is %+v, and again %+v", s, name, again)
		}
		if strings.ContainsAny(name.Namespace+name.Tenant+name.User, "/ %\\\x00") {
			t.Errorf("%q is %+v", s, name)
		}
	})
}

// FuzzExternalUser: the domain that selects the tenant is what follows the last @, and
// the name cannot be that of a listed user.
func FuzzExternalUser(f *testing.F) {
	for _, email := range []string{"a@acme.test", "A@ACME.TEST", `"a@other.test"@acme.test`, "acme.test", "@", "a@acme.test\x00"} {
		f.Add("https://issuer.test", "subject", email)
	}
	f.Fuzz(func(t *testing.T, issuer, subject, email string) {
		u := tenant.ExternalUser{Issuer: issuer, Subject: subject, Email: email}
		if domain := u.Domain(); strings.Contains(domain, "@") || domain != strings.ToLower(domain) {
			t.Errorf("domain of %q is %q", email, domain)
		}
		if name := u.UserName(); !strings.HasPrefix(name, "oidc-") || len(name) != len("oidc-")+16 {
			t.Errorf("name of %q is %q", subject, name)
		}
	})
}
