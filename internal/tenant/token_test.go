package tenant_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestIsTokenAcceptsNewTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "random bytes")
		token, err := tenant.NewToken(0, bytes.NewReader(seed))
		if err != nil {
			t.Fatal(err)
		}
		if len(token) != 41 || !tenant.IsToken(token) {
			t.Fatalf("IsToken(%q) = false", token)
		}
		// Secret scanners rely on the detection of any single changed character.
		i := rapid.IntRange(0, len(token)-1).Draw(t, "position")
		c := rapid.ByteRange('!', '~').Filter(func(c byte) bool { return c != token[i] }).Draw(t, "character")
		broken := token[:i] + string(c) + token[i+1:]
		if tenant.IsToken(broken) {
			t.Fatalf("IsToken(%q) = true for a changed %q", broken, token)
		}
	})
}

func TestNewSecretsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[tenant.Hash]bool{}
	for range 1000 {
		token, err := tenant.NewToken(0, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		password, err := tenant.NewPassword(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		seen[tenant.HashSecret(token)] = true
		seen[tenant.HashSecret(password)] = true
	}
	if len(seen) != 2000 {
		t.Errorf("2000 secrets have %d distinct hashes", len(seen))
	}
}

func TestNewTokenWithoutRandomness(t *testing.T) {
	t.Parallel()
	if token, err := tenant.NewToken(0, bytes.NewReader(nil)); !errors.Is(err, io.EOF) || token != "" {
		t.Errorf("NewToken = %q, %v; want no token and EOF", token, err)
	}
}

func TestIsTokenRejects(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "mn_", "mn_short", "Bearer x", "mn_" + string(make([]byte, 38))} {
		if tenant.IsToken(s) {
			t.Errorf("IsToken(%q) = true", s)
		}
	}
}
