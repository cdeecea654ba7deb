package secrettest_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/test/secrettest"
)

// A secret is found in every form in which programs write it, and nothing else is.
func TestFind(t *testing.T) {
	t.Parallel()
	const secret = "a+b/c?d&e=f~secret~Ü"
	var s secrettest.Secrets
	if !s.Add("password", secret) || !s.Add("token", "mn_0123456789abcdef") {
		t.Fatal("the secrets were not added")
	}
	if s.Add("short", "secret") {
		t.Error("a secret was added that other texts contain")
	}
	in := func(text string) string { return "a line of the log: " + text + ", and more" }
	texts := map[string]string{"verbatim": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for _, before := range []string{"", "a", "al", "alice:"} {
		for _, after := range []string{"", ".", "..", "@host"} {
			text := []byte(before + secret + after)
			texts["base64 "+before+after] = base64.StdEncoding.EncodeToString(text)
			texts["base64url "+before+after] = base64.RawURLEncoding.EncodeToString(text)
		}
	}
	for name, text := range texts {
		if got := s.Find(in(text)); !slices.Equal(got, []string{"password"}) {
			t.Errorf("%s: found %v, want the password", name, got)
		}
	}
	for _, text := range []string{"", "short", in(secret[:len(secret)-3]), in(strings.ToUpper(secret)), "mn_0123456789abcde"} {
		if got := s.Find(text); len(got) > 0 {
			t.Errorf("%q: found %v, want nothing", text, got)
		}
	}
	if got := s.Find("mn_0123456789abcdef"); !slices.Equal(got, []string{"token"}) {
		t.Errorf("the whole text: found %v, want the token", got)
	}
	if got := s.Names(); !slices.Equal(got, []string{"password", "token"}) {
		t.Errorf("names %v", got)
	}
}
