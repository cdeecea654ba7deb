package httpx

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// A user's requests beyond the limit wait, in their order, and those of others do not.
func TestUsersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns[string](2)
		alice, bob := "alice", "bob"
		take := func(who string) func() {
			t.Helper()
			end, err := turns.Take(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			return end
		}
		first, second := take(alice), take(alice)
		order := make(chan int, 2)
		for i := range cap(order) {
			go func() {
				end, err := turns.Take(t.Context(), alice)
				if order <- i; err == nil {
					end()
				}
			}()
			synctest.Wait()
		}
		take(bob)()
		if n := len(order); n != 0 {
			t.Fatalf("%d requests above the limit had their turn", n)
		}
		first()
		synctest.Wait()
		if a, b := <-order, <-order; a != 0 || b != 1 {
			t.Errorf("the order of turns was %d, %d, want that of arrival", a, b)
		}
		second()
		if len(turns.users) != 0 {
			t.Errorf("%d users are kept after all turns, want none", len(turns.users))
		}
	})
}

// Waiting is limited in time and number, and a request that gave up holds no turn.
func TestWaitingForTurnsIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns, who := NewTurns[string](1), "alice"
		end, err := turns.Take(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, maxWaiting)
		for range cap(results) {
			go func() {
				_, err := turns.Take(t.Context(), who)
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := turns.Take(t.Context(), who); !fault.Is(err, fault.RateLimited) || len(results) != 0 {
			t.Errorf("one more request: %v, want to be refused at once, while %d wait", err, maxWaiting)
		}
		for range cap(results) {
			if err := <-results; !fault.Is(err, fault.RateLimited) {
				t.Errorf("waited for a turn: %v, want to be refused", err)
			}
		}
		end()
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if end, err := turns.Take(canceled, who); err == nil {
			end()
		}
		if len(turns.users) != 0 {
			t.Errorf("%d users are kept, want none", len(turns.users))
		}
	})
}
