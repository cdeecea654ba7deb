package controllers_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestDeletedSecret(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice", "bob")
	tn.Spec.TokenOverlap = metav1.Duration{Duration: time.Hour} // not for this: it may have leaked
	w.expectReady(t, tn)
	w.expectEvents(t, "Normal Ready")
	secret, bob := w.secret(t, "acme-alice-access"), w.expectOneToken(t, "bob")
	w.mustDelete(t, secret)
	w.expectReconciled(t)
	if token := w.expectOneToken(t, "alice"); token == string(secret.Data["token"]) {
		t.Error("the old token came back")
	}
	if password := w.secret(t, "acme-alice-access").Data["password"]; string(password) == string(secret.Data["password"]) {
		t.Error("the old password came back")
	}
	expectEqual(t, "the other user's token", w.expectOneToken(t, "bob"), bob)
	expectEqual(t, "issued", w.tenant(t).Status.Users[0].Issued, int64(2))
	w.expectEvents(t, "Normal TokenIssued issued a new token and password for user alice")
}

func TestRotation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		overlap time.Duration
		valid   int // of the user's tokens, right after
	}{
		"at once":      {0, 1},
		"with overlap": {time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			tn := w.newTenant("alice")
			tn.Spec.TokenOverlap.Duration = test.overlap
			w.expectReady(t, tn)
			old := w.expectOneToken(t, "alice")
			w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 5 })
			w.expectReconciled(t)
			token := string(w.secret(t, "acme-alice-access").Data["token"])
			if token == old {
				t.Fatal("the token was not replaced")
			}
			valid := w.fake.Valid(w.id(t), "alice")
			if len(valid) != test.valid || valid[len(valid)-1] != tenant.HashSecret(token) {
				t.Errorf("%d tokens are valid, want %d with the Secret's as the newest", len(valid), test.valid)
			}
			expectEqual(t, "status", w.tenant(t).Status.Users, []v1alpha1.UserStatus{{
				Name: "alice", Secret: "acme-alice-access", Fingerprint: tenant.HashSecret(token).Fingerprint(),
				TokenGeneration: 5, Issued: 2, ManagedBy: v1alpha1.ManagedByOperator,
			}})
			before := w.versions(t)
			w.expectReconciled(t)
			expectEqual(t, "resource versions", w.versions(t), before)
		})
	}
}

// rotateAll annotates the tenant as a person would: "" takes the annotation off.
func (w *world) rotateAll(t *testing.T, value string) {
	t.Helper()
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Annotations = map[string]string{v1alpha1.AnnotationRotate: value}
		if value == "" {
			tn.Annotations = nil
		}
	})
}

func TestRotateAllUsers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice", "bob"))
	w.expectEvents(t, "Normal Ready")
	alice, bob := w.expectOneToken(t, "alice"), w.expectOneToken(t, "bob")
	password := string(w.secret(t, "acme-bob-access").Data["password"])

	w.rotateAll(t, "2026-05-01")
	w.expectReconciled(t)
	alice2, bob2 := w.expectOneToken(t, "alice"), w.expectOneToken(t, "bob")
	if alice2 == alice || bob2 == bob {
		t.Error("a token was not replaced")
	}
	if string(w.secret(t, "acme-bob-access").Data["password"]) == password {
		t.Error("a password was not replaced")
	}
	expectEqual(t, "rotated", w.tenant(t).Status.Rotated, "2026-05-01")
	w.expectEvents(t, "Normal Rotated")

	// Once for each value: neither again, nor when it is taken off and put back.
	w.expectReconciled(t)
	w.rotateAll(t, "")
	w.expectReconciled(t)
	w.rotateAll(t, "2026-05-01")
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: "carol"})
	})
	w.expectReconciled(t)
	w.expectReconciled(t)
	expectEqual(t, "alice's token", w.expectOneToken(t, "alice"), alice2)
	w.expectOneToken(t, "carol")
	w.expectEvents(t)
	expectEqual(t, "installed", w.fake.Calls()["Install"], 5)

	long := strings.Repeat("x", 100)
	w.rotateAll(t, long)
	w.expectReconciled(t)
	if w.expectOneToken(t, "alice") == alice2 {
		t.Error("a long value did not rotate")
	}
	if got := w.tenant(t).Status.Rotated; !strings.HasPrefix(got, "sha256:") {
		t.Errorf("rotated is %q, want a hash", got)
	}
	w.expectReconciled(t)
	expectEqual(t, "installed", w.fake.Calls()["Install"], 8)
}

// TestRotateAllUsersAfterACrash breaks the rotation off after the first of two
// users: the value is recorded when both are done, and nobody's turn comes twice.
func TestRotateAllUsersAfterACrash(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice", "bob"))
	w.rotateAll(t, "now")
	w.fake.Before = func(method string) error {
		if method == "Install" && w.fake.Installed() == 3 {
			return errAway
		}
		return nil
	}
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want it to be tried again", err)
	}
	expectEqual(t, "rotated", w.tenant(t).Status.Rotated, "")
	alice := w.expectOneToken(t, "alice")
	w.fake.Heal()
	w.expectReconciled(t)
	expectEqual(t, "alice's token", w.expectOneToken(t, "alice"), alice)
	w.expectOneToken(t, "bob")
	expectEqual(t, "rotated", w.tenant(t).Status.Rotated, "now")
}

// TestRemovedUserWhileAnotherFails: the Secret of who lost access does not wait.
func TestRemovedUserWhileAnotherFails(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice", "bob"))
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = []v1alpha1.TenantUser{{Name: "bob", TokenGeneration: 2}}
	})
	w.fake.Fail(errAway, "Install")
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want it to be tried again", err)
	}
	w.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
}

func TestForeignSecretIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]metav1.ObjectMeta{
		"nobody's": {},
		"with our labels": {Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: "acme", v1alpha1.LabelUser: "alice",
		}},
		"of an earlier tenant": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "mnemo.dev/v1alpha1", Kind: "Tenant", Name: "acme", UID: "gone", Controller: new(true),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			meta.Namespace, meta.Name = w.ns, "acme-alice-access"
			foreign := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("theirs")}}
			foreign.Finalizers = []string{"mnemo.dev/test"} // the garbage collector takes orphans
			w.mustCreate(t, foreign)
			w.mustCreate(t, w.newTenant("alice", "bob"))
			w.expectReconciled(t)
			w.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "acme-alice-access")
			w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "")
			w.expectEvents(t, "Warning SecretConflict")
			w.expectOneToken(t, "bob")
			expectEqual(t, "valid tokens nobody was given", len(w.fake.Valid(w.id(t), "alice")), 0)
			w.expectReconciled(t)
			expectEqual(t, "installed", w.fake.Calls()["Install"], 1)
			now := w.secret(t, "acme-alice-access")
			expectEqual(t, "the foreign Secret", now.Data, foreign.Data)

			w.mustDelete(t, w.tenant(t))
			w.expectReconciled(t)
			w.expectMissing(t, &corev1.Secret{}, "acme-bob-access")
			now = w.secret(t, "acme-alice-access") // still there
			now.Finalizers = nil
			if err := w.Update(t.Context(), now); err != nil {
				t.Fatalf("release Secret: %v", err)
			}
		})
	}
}

func TestDriftOfSecretsIsRepaired(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*corev1.Secret)
		reissue bool
	}{
		"labels":   {func(s *corev1.Secret) { s.Labels = nil }, false},
		"url":      {func(s *corev1.Secret) { s.Data["url"] = []byte("https://elsewhere.test") }, false},
		"token":    {func(s *corev1.Secret) { s.Data["token"] = []byte("mine") }, true},
		"password": {func(s *corev1.Secret) { s.Data["password"] = []byte("mine") }, true},
		"no data":  {func(s *corev1.Secret) { s.Data = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.expectReady(t, w.newTenant("alice"))
			before := w.secret(t, "acme-alice-access")
			changed := before.DeepCopy()
			test.change(changed)
			if err := w.Update(t.Context(), changed); err != nil {
				t.Fatalf("change Secret: %v", err)
			}
			w.expectReconciled(t)
			token := w.expectOneToken(t, "alice")
			after := w.secret(t, "acme-alice-access")
			expectEqual(t, "labels", after.Labels, before.Labels)
			expectEqual(t, "url", string(after.Data["url"]), apiURL)
			if reissued := token != string(before.Data["token"]); reissued != test.reissue {
				t.Errorf("a new token was issued: %v, want %v", reissued, test.reissue)
			}
		})
	}
}

func TestRemovedUser(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice", "bob"))
	bob := w.expectOneToken(t, "bob")
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[1:] })
	w.expectReconciled(t)
	w.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	expectEqual(t, "valid tokens", len(w.fake.Valid(w.id(t), "alice")), 0)
	expectEqual(t, "the other user's token", w.expectOneToken(t, "bob"), bob)
	expectEqual(t, "users in the status", len(w.tenant(t).Status.Users), 1)

	// Listed again before her Secret was deleted: the revoked token in it is no good.
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: "alice"})
	})
	w.expectReconciled(t)
	first := w.expectOneToken(t, "alice")
	tn := w.tenant(t)
	spec, _ := w.fake.Spec(tenant.ID(tn.UID))
	spec.Users = []tenant.UserSpec{{Name: "bob"}}
	if _, err := w.fake.Apply(t.Context(), spec); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	w.expectReconciled(t)
	if second := w.expectOneToken(t, "alice"); second == first {
		t.Error("a revoked token stayed in the Secret")
	}
}

func TestTokenTheUserIssued(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice"))
	secret, id := w.secret(t, "acme-alice-access"), w.id(t)
	mine := tenant.HashSecret("mine")
	if _, err := w.fake.ReplaceToken(t.Context(), w.fake.Scope(id, "alice"), mine); err != nil {
		t.Fatalf("ReplaceToken: %v", err)
	}
	expectEqual(t, "valid tokens", w.fake.Valid(id, "alice"), []tenant.Hash{mine})
	w.expectReconciled(t)
	now := w.secret(t, "acme-alice-access")
	expectEqual(t, "data", now.Data, map[string][]byte{
		"token": {}, "password": secret.Data["password"], "url": secret.Data["url"],
	})
	expectEqual(t, "valid tokens", w.fake.Valid(id, "alice"), []tenant.Hash{mine})
	expectEqual(t, "managedBy", w.tenant(t).Status.Users[0].ManagedBy, v1alpha1.ManagedByUser)
	before := w.versions(t)
	w.expectReconciled(t)
	expectEqual(t, "resource versions", w.versions(t), before)

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	w.expectReconciled(t)
	w.expectOneToken(t, "alice")
	expectEqual(t, "managedBy", w.tenant(t).Status.Users[0].ManagedBy, v1alpha1.ManagedByOperator)
}
