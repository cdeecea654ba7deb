package controllers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errCrash simulates a process that dies between two writes, or a lost response:
// the pass ends with it.
var errCrash = errors.New("crash")

// TestCrashWhileIssuing ends passes before and after each of the three writes of
// issuing a token. The next pass must leave exactly one valid token, that of the
// Secret, and during a rotation the published token must always be valid.
func TestCrashWhileIssuing(t *testing.T) {
	t.Parallel()
	for cause, begin := range map[string]func(*testing.T, *env){
		"first":          func(*testing.T, *env) {},
		"rotation":       rotate,
		"deleted Secret": deleteSecret,
	} {
		for point, arm := range map[string]func(*env){
			"before install": func(e *env) { e.store.fail(errCrash, "Install") },
			"after install":  func(e *env) { e.store.failAfter(errCrash, "Install") },
			"before Secret":  func(e *env) { e.secretWrite = failAt("before") },
			"after Secret":   func(e *env) { e.secretWrite = failAt("after") },
			"before revoke":  func(e *env) { e.store.fail(errCrash, "RevokeOlder") },
			"after revoke":   func(e *env) { e.store.failAfter(errCrash, "RevokeOlder") },
		} {
			if cause == "first" && strings.HasSuffix(point, "revoke") {
				continue // there is nothing to revoke
			}
			t.Run(cause+", "+point, func(t *testing.T) {
				t.Parallel()
				e := setup(t)
				if cause == "first" {
					e.mustCreate(t, e.newTenant("alice"))
				} else {
					e.expectReady(t, e.newTenant("alice"))
				}
				begin(t, e)
				arm(e)
				for i := range 2 {
					_, err := e.reconcile(t)
					if repaired := i > 0 && err == nil; !repaired && !errors.Is(err, errCrash) {
						t.Fatalf("Reconcile: got error %v, want a crash", err)
					}
					if cause == "rotation" {
						e.expectPublishedIsValid(t)
					}
				}
				e.store.heal()
				e.secretWrite = nil
				e.expectReconciled(t)
				e.expectOneToken(t, "alice")
				before := e.versions(t)
				e.expectReconciled(t)
				expectEqual(t, "resource versions", e.versions(t), before)
			})
		}
	}
}

func rotate(t *testing.T, e *env) {
	t.Helper()
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
}

func deleteSecret(t *testing.T, e *env) {
	t.Helper()
	e.mustDelete(t, e.secret(t, "acme-alice-access"))
}

func failAt(point string) func(string) error {
	return func(when string) error {
		if when == point {
			return errCrash
		}
		return nil
	}
}

// expectPublishedIsValid checks that the token in the Secret works.
func (e *env) expectPublishedIsValid(t *testing.T) {
	t.Helper()
	token := e.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken]
	if _, err := e.store.Identify(t.Context(), tenant.HashSecret(string(token))); err != nil {
		t.Fatalf("the token in the Secret: %v", err)
	}
}
