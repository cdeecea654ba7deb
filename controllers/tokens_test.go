package controllers_test

import (
	"maps"
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
	e := setup(t)
	tn := e.newTenant("alice", "bob")
	tn.Spec.TokenOverlap = metav1.Duration{Duration: time.Hour} // not for this: it may have leaked
	e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	secret, bob := e.secret(t, "acme-alice-access"), e.expectOneToken(t, "bob")
	e.mustDelete(t, secret)
	e.expectReconciled(t)
	if token := e.expectOneToken(t, "alice"); token == string(secret.Data["token"]) {
		t.Error("the old token was issued again")
	}
	if password := e.secret(t, "acme-alice-access").Data["password"]; string(password) == string(secret.Data["password"]) {
		t.Error("the old password was issued again")
	}
	expectEqual(t, "the other user's token", e.expectOneToken(t, "bob"), bob)
	expectEqual(t, "issued", e.tenant(t).Status.Users[0].Issued, int64(2))
	e.expectEvents(t, "Normal TokenIssued issued a new token and password for user alice")
}

func TestRotation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		overlap time.Duration
		valid   int // of the user's tokens, right after
	}{
		"without overlap": {0, 1},
		"with overlap":    {time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tn := e.newTenant("alice")
			tn.Spec.TokenOverlap.Duration = test.overlap
			e.expectReady(t, tn)
			old := e.expectOneToken(t, "alice")
			e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 5 })
			e.expectReconciled(t)
			token := string(e.secret(t, "acme-alice-access").Data["token"])
			if token == old {
				t.Fatal("the token was not replaced")
			}
			valid := e.store.valid(e.id(t), "alice")
			if len(valid) != test.valid {
				t.Fatalf("len(valid) = %d, want %d", len(valid), test.valid)
			}
			if valid[len(valid)-1] != tenant.HashSecret(token) {
				t.Errorf("valid[len(valid)-1] = %v, want %v", valid[len(valid)-1], tenant.HashSecret(token))
			}
			expectEqual(t, "status", e.tenant(t).Status.Users, []v1alpha1.UserStatus{{
				Name: "alice", Secret: "acme-alice-access", Fingerprint: tenant.HashSecret(token).Fingerprint(),
				TokenGeneration: 5, Issued: 2, ManagedBy: v1alpha1.ManagedByOperator,
			}})
			before := e.versions(t)
			e.expectReconciled(t)
			expectEqual(t, "resource versions", e.versions(t), before)
		})
	}
}

// rotateAll sets annotation mnemo.dev/rotate, or removes it if value is "".
func (e *env) rotateAll(t *testing.T, value string) {
	t.Helper()
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Annotations = map[string]string{v1alpha1.AnnotationRotate: value}
		if value == "" {
			tn.Annotations = nil
		}
	})
}

func TestRotateAllUsers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice", "bob"))
	e.expectEvents(t, "Normal Ready")
	alice, bob := e.expectOneToken(t, "alice"), e.expectOneToken(t, "bob")
	password := string(e.secret(t, "acme-bob-access").Data["password"])

	e.rotateAll(t, "2026-05-01")
	e.expectReconciled(t)
	alice2, bob2 := e.expectOneToken(t, "alice"), e.expectOneToken(t, "bob")
	if alice2 == alice || bob2 == bob {
		t.Error("a token was not replaced")
	}
	if string(e.secret(t, "acme-bob-access").Data["password"]) == password {
		t.Error("a password was not replaced")
	}
	expectEqual(t, "rotated", e.tenant(t).Status.Rotated, "2026-05-01")
	e.expectEvents(t, "Normal Rotated")

	// Once per value, even if the annotation is removed and set again.
	e.expectReconciled(t)
	e.rotateAll(t, "")
	e.expectReconciled(t)
	e.rotateAll(t, "2026-05-01")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: "carol"})
	})
	e.expectReconciled(t)
	e.expectReconciled(t)
	expectEqual(t, "alice's token", e.expectOneToken(t, "alice"), alice2)
	e.expectOneToken(t, "carol")
	e.expectEvents(t)
	expectEqual(t, "installed", e.store.counts()["Install"], 5)

	long := strings.Repeat("x", 100)
	e.rotateAll(t, long)
	e.expectReconciled(t)
	if e.expectOneToken(t, "alice") == alice2 {
		t.Error("a long value did not rotate the token")
	}
	if got := e.tenant(t).Status.Rotated; !strings.HasPrefix(got, "sha256:") {
		t.Errorf("rotated is %q, want a hash", got)
	}
	e.expectReconciled(t)
	expectEqual(t, "installed", e.store.counts()["Install"], 8)
}

// TestRotateAllUsersAfterACrash: a rotation that fails after the first of two users
// is completed without rotating the first one again.
func TestRotateAllUsersAfterACrash(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice", "bob"))
	e.rotateAll(t, "now")
	e.store.failIf(func(method string) error {
		if method == "Install" && e.store.installed == 3 {
			return errPostgresUnavailable
		}
		return nil
	})
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	expectEqual(t, "rotated", e.tenant(t).Status.Rotated, "")
	alice := e.expectOneToken(t, "alice")
	e.store.heal()
	e.expectReconciled(t)
	expectEqual(t, "alice's token", e.expectOneToken(t, "alice"), alice)
	e.expectOneToken(t, "bob")
	expectEqual(t, "rotated", e.tenant(t).Status.Rotated, "now")
}

// TestRemovedUserWhileAnotherFails: the removed user's Secret is deleted first.
func TestRemovedUserWhileAnotherFails(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice", "bob"))
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = []v1alpha1.TenantUser{{Name: "bob", TokenGeneration: 2}}
	})
	e.store.fail(errPostgresUnavailable, "Install")
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
}

func TestForeignSecretIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]metav1.ObjectMeta{
		"without owner": {},
		"with our labels": {Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: "acme", v1alpha1.LabelUser: "alice",
		}},
		"owned by a deleted Tenant": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "mnemo.dev/v1alpha1", Kind: "Tenant", Name: "acme", UID: "gone", Controller: new(true),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			meta.Namespace, meta.Name = e.ns, "acme-alice-access"
			foreign := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("theirs")}}
			foreign.Finalizers = []string{"mnemo.dev/test"} // the garbage collector takes orphans
			e.mustCreate(t, foreign)
			e.mustCreate(t, e.newTenant("alice", "bob"))
			e.expectReconciled(t)
			e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "acme-alice-access")
			e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "")
			e.expectEvents(t, "Warning SecretConflict")
			e.expectOneToken(t, "bob")
			expectEqual(t, "valid tokens that were never published", len(e.store.valid(e.id(t), "alice")), 0)
			e.expectReconciled(t)
			expectEqual(t, "installed", e.store.counts()["Install"], 1)
			now := e.secret(t, "acme-alice-access")
			expectEqual(t, "the foreign Secret", now.Data, foreign.Data)

			e.mustDelete(t, e.tenant(t))
			e.expectReconciled(t)
			e.expectMissing(t, &corev1.Secret{}, "acme-bob-access")
			now = e.secret(t, "acme-alice-access") // still there
			now.Finalizers = nil
			if err := e.Update(t.Context(), now); err != nil {
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
		"mcpUrl":   {func(s *corev1.Secret) { s.Data["mcpUrl"] = nil }, false},
		"name":     {func(s *corev1.Secret) { s.Data["signInName"] = []byte("acme/bob") }, false},
		"keys of an earlier version": {func(s *corev1.Secret) {
			delete(s.Data, "mcpUrl")
			delete(s.Data, "signInName")
		}, false},
		"no data": {func(s *corev1.Secret) { s.Data = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.expectReady(t, e.newTenant("alice"))
			before := e.secret(t, "acme-alice-access")
			changed := before.DeepCopy()
			test.change(changed)
			if err := e.Update(t.Context(), changed); err != nil {
				t.Fatalf("change Secret: %v", err)
			}
			e.expectReconciled(t)
			token := e.expectOneToken(t, "alice")
			after := e.secret(t, "acme-alice-access")
			expectEqual(t, "labels", after.Labels, before.Labels)
			for key, want := range map[string]string{"url": apiURL, "mcpUrl": apiURL + "/mcp", "signInName": "acme/alice"} {
				expectEqual(t, key, string(after.Data[key]), want)
			}
			if reissued := token != string(before.Data["token"]); reissued != test.reissue {
				t.Errorf("a new token was issued: %v, want %v", reissued, test.reissue)
			}
		})
	}
}

func TestRemovedUser(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice", "bob"))
	bob := e.expectOneToken(t, "bob")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[1:] })
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	expectEqual(t, "valid tokens", len(e.store.valid(e.id(t), "alice")), 0)
	expectEqual(t, "the other user's token", e.expectOneToken(t, "bob"), bob)
	expectEqual(t, "users in the status", len(e.tenant(t).Status.Users), 1)

	// Listed again before the Secret was deleted, which holds a revoked token.
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: "alice"})
	})
	e.expectReconciled(t)
	first := e.expectOneToken(t, "alice")
	tn := e.tenant(t)
	spec, _ := e.store.spec(tenant.ID(tn.UID))
	spec.Users = []tenant.UserSpec{{Name: "bob"}}
	if _, err := e.store.Apply(t.Context(), spec); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	e.expectReconciled(t)
	if second := e.expectOneToken(t, "alice"); second == first {
		t.Error("a revoked token stayed in the Secret")
	}
}

func TestTokenRegeneratedByTheUser(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	secret, id := e.secret(t, "acme-alice-access"), e.id(t)
	mine := tenant.HashSecret("mine")
	if _, err := e.store.ReplaceToken(t.Context(), e.store.scope(id, "alice"), mine); err != nil {
		t.Fatalf("ReplaceToken: %v", err)
	}
	expectEqual(t, "valid tokens", e.store.valid(id, "alice"), []tenant.Hash{mine})
	e.expectReconciled(t)
	now := e.secret(t, "acme-alice-access")
	expectEqual(t, "data", now.Data, map[string][]byte{
		"token": {}, "password": secret.Data["password"], "url": secret.Data["url"],
		"mcpUrl": secret.Data["mcpUrl"], "signInName": secret.Data["signInName"],
	})
	expectEqual(t, "valid tokens", e.store.valid(id, "alice"), []tenant.Hash{mine})
	expectEqual(t, "managedBy", e.tenant(t).Status.Users[0].ManagedBy, v1alpha1.ManagedByUser)
	before := e.versions(t)
	e.expectReconciled(t)
	expectEqual(t, "resource versions", e.versions(t), before)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	e.expectReconciled(t)
	e.expectOneToken(t, "alice")
	expectEqual(t, "managedBy", e.tenant(t).Status.Users[0].ManagedBy, v1alpha1.ManagedByOperator)
}

func TestPasswordReplacedByTheUser(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	secret, token := e.secret(t, "acme-alice-access"), e.expectOneToken(t, "alice")
	e.replacePassword(t, "mine")
	e.expectReconciled(t)
	now := e.secret(t, "acme-alice-access")
	want := maps.Clone(secret.Data)
	want["password"] = []byte{}
	expectEqual(t, "data", now.Data, want)
	annotations := maps.Clone(secret.Annotations)
	delete(annotations, v1alpha1.AnnotationPasswordFingerprint)
	expectEqual(t, "annotations", now.Annotations, annotations)
	expectEqual(t, "token", e.expectOneToken(t, "alice"), token)
	before := e.versions(t)
	e.expectReconciled(t)
	expectEqual(t, "resource versions", e.versions(t), before)

	changed := now.DeepCopy()
	changed.Data["password"] = []byte("s3cret")
	if err := e.Update(t.Context(), changed); err != nil {
		t.Fatalf("change Secret: %v", err)
	}
	e.expectReconciled(t)
	expectEqual(t, "data after a change", e.secret(t, "acme-alice-access").Data, want)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	e.expectReconciled(t)
	e.signIn(t, tenant.HashSecret("session"))
	if e.expectOneToken(t, "alice") == token {
		t.Error("tokenGeneration was raised, and the token was not replaced")
	}

	e.replacePassword(t, "mine again")
	e.expectReconciled(t)
	e.mustDelete(t, e.secret(t, "acme-alice-access"))
	e.expectReconciled(t)
	e.signIn(t, tenant.HashSecret("another session"))
}

// signIn begins a session of alice with the password in her Secret.
func (e *env) signIn(t *testing.T, session tenant.Hash) {
	t.Helper()
	s := e.secret(t, "acme-alice-access")
	expectEqual(t, "fingerprint of the password", s.Annotations[v1alpha1.AnnotationPasswordFingerprint],
		tenant.HashSecret(string(s.Data["password"])).Fingerprint())
	name, ok := tenant.ParseSignInName(string(s.Data["signInName"]))
	if !ok {
		t.Fatalf("signInName is %q", s.Data["signInName"])
	}
	err := e.store.SignIn(t.Context(), tenant.SignIn{Name: name, Password: tenant.HashSecret(string(s.Data["password"])), Session: session,
		Address: "192.0.2.1", Lifetime: time.Hour})
	if err != nil {
		t.Fatalf("sign in with the Secret's password: %v", err)
	}
}

// replacePassword replaces alice's password, as the dashboard does.
func (e *env) replacePassword(t *testing.T, password string) {
	t.Helper()
	session := tenant.HashSecret(password + " session")
	e.signIn(t, session)
	if err := e.store.ReplacePassword(t.Context(), e.store.scope(e.id(t), "alice"), session, tenant.HashSecret(password)); err != nil {
		t.Fatalf("ReplacePassword: %v", err)
	}
}
