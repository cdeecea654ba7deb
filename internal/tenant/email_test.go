package tenant_test

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestEmailAddressesAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"ann@acme.test", "Ann.O'Neil+x@acme.test", "{a}!#$%&*/=?^_`|~-@x", "jörg@müller.test", "a@localhost", "株@x.test"} {
		if !tenant.IsEmail(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{
		"", "a", "@x.test", "a@", "a@b@c", "a b@x.test", "a@x.test ", "a@x.test\n", "\x1b[31ma@x.test", "a@x.test\x1b[2J", "a\x00@x.test",
		"a\u202e@x.test", "a\u200b@x.test", "\ufeffa@x.test", "a\u00a0@x.test", `"a b"@x.test`, `"a"@x.test`, "Ann <a@x.test>", "a@[192.0.2.1]",
		"a(b)@x.test", "a..b@x.test", ".a@x.test", "a@x.test.", `a\b@x.test`, "a,b@x.test", "a\xff@x.test", strings.Repeat("a", 320) + "@x.test",
	} {
		if tenant.IsEmail(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}
