package controllers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errCrash stands for a process that ends between two writes, or an answer
// that is lost: nothing after it happens in that pass.
var errCrash = errors.New("crash")

// TestCrashWhileIssuing ends each pass at one of the points around the three
// writes of issuing, and checks that the next one leaves one valid token, the
// Secret's, and that a user is never without a valid token that was published.
func TestCrashWhileIssuing(t *testing.T) {
	t.Parallel()
	for cause, begin := range map[string]func(*testing.T, *world){
		"first":          func(*testing.T, *world) {},
		"rotation":       rotate,
		"deleted Secret": deleteSecret,
	} {
		for point, arm := range map[string]func(*world){
			"before install": func(w *world) { w.fake.Fail(errCrash, "Install") },
			"after install":  func(w *world) { w.fake.FailAfter(errCrash, "Install") },
			"before Secret":  func(w *world) { w.secretWrite = failAt("before") },
			"after Secret":   func(w *world) { w.secretWrite = failAt("after") },
			"before revoke":  func(w *world) { w.fake.Fail(errCrash, "RevokeOlder") },
			"after revoke":   func(w *world) { w.fake.FailAfter(errCrash, "RevokeOlder") },
		} {
			if cause == "first" && strings.HasSuffix(point, "revoke") {
				continue // there is nothing to revoke
			}
			t.Run(cause+", "+point, func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				if cause == "first" {
					w.mustCreate(t, w.newTenant("alice"))
				} else {
					w.expectReady(t, w.newTenant("alice"))
				}
				begin(t, w)
				arm(w)
				for i := range 2 {
					_, err := w.reconcile(t)
					if mended := i > 0 && err == nil; !mended && !errors.Is(err, errCrash) {
						t.Fatalf("Reconcile: %v, want it to be broken off", err)
					}
					if cause == "rotation" {
						w.expectPublishedIsValid(t)
					}
				}
				w.fake.Heal()
				w.secretWrite = nil
				w.expectReconciled(t)
				w.expectOneToken(t, "alice")
				before := w.versions(t)
				w.expectReconciled(t)
				expectEqual(t, "resource versions", w.versions(t), before)
			})
		}
	}
}

func rotate(t *testing.T, w *world) {
	t.Helper()
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
}

func deleteSecret(t *testing.T, w *world) {
	t.Helper()
	w.mustDelete(t, w.secret(t, "acme-alice-access"))
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
func (w *world) expectPublishedIsValid(t *testing.T) {
	t.Helper()
	token := w.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken]
	if _, err := w.fake.Identify(t.Context(), tenant.HashSecret(string(token))); err != nil {
		t.Fatalf("the token in the Secret: %v", err)
	}
}
