package tenant_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Every user can be named in a header, a path and a filter.
func TestUsersOfApplicationsAreAddressable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " col1", "col1 ", "\u00a0col1", "*", ".", "..", "a\tb"} {
		if err := tenant.CheckApplicationUser("user", name); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want Invalid", name, err)
		}
	}
	for _, name := range []string{"col 1", "a*", "ann@example.com", "a/b"} {
		if err := tenant.CheckApplicationUser("user", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A list can begin after any text, which need not be the name of a user.
func TestAnyTextIsAPositionOfUsers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"*", " ", ".", "ann"} {
		if err := tenant.CheckUserPosition("after", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "a\x00", "\xff"} {
		if err := tenant.CheckUserPosition("after", text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want Invalid", text, err)
		}
	}
}
