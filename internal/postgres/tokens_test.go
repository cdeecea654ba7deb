package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestTokenUseIsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for i, name := range []string{"alice", "bob"} { // in the order of b.users
		c := tenant.Credential{Generation: 1, TokenHash: tenant.Hash{byte(i), 9}, Issuer: tenant.IssuerOperator}
		if err := b.Install(t.Context(), b.specs[0].ID, name, c); err != nil {
			t.Fatal(err)
		}
	}
	// written returns the xmin of the row and whether the token was used.
	written := func(user tenant.UserID) (xmin string, used bool) {
		err := b.owner.QueryRow(t.Context(), "select xmin::text, last_used_at is not null from tokens where user_id = $1", user).Scan(&xmin, &used)
		if err != nil {
			t.Fatal(err)
		}
		return xmin, used
	}
	identify := func() {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := b.Identify(t.Context(), tenant.Hash{0, 9}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	identify()
	first, used := written(b.users[0].User)
	for started := time.Now(); !used; first, used = written(b.users[0].User) {
		<-time.After(10 * time.Millisecond)
		if time.Since(started) > patience {
			t.Fatal("the use of a token was not recorded")
		}
	}
	identify()
	if again, _ := written(b.users[0].User); again != first {
		t.Error("two uses within a minute were recorded twice")
	}
	if _, used := written(b.users[1].User); used {
		t.Error("an unused token is recorded as used")
	}
}
