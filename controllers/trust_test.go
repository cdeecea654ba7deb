package controllers_test

import (
	"crypto/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// trustEnv is an env with the database of its store.
type trustEnv struct {
	*env
	db *postgres.DB
}

func setupTrust(t *testing.T, config controllers.Config) *trustEnv {
	t.Helper()
	e := &trustEnv{env: setup(t)}
	e.db = e.store.DB
	e.use(t, config)
	return e
}

// annotateNamespace sets an annotation as the platform administrator does.
func (e *env) annotateNamespace(t *testing.T, key, value string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	before := ns.DeepCopy()
	ns.Annotations = map[string]string{key: value}
	if err := e.Patch(t.Context(), ns, client.MergeFrom(before)); err != nil {
		t.Fatalf("annotate namespace: %v", err)
	}
}

// signIn signs a user in who has a verified address.
func (e *trustEnv) signIn(t *testing.T, issuer, email string) error {
	t.Helper()
	return e.db.SignInExternal(t.Context(), tenant.ExternalSignIn{
		ExternalUser: tenant.ExternalUser{Issuer: issuer, Subject: email, Email: email},
		Session:      tenant.HashSecret(rand.Text()), Lifetime: 1 << 40, Address: "192.0.2.1",
	})
}

// TestOnlyAssignedDomainsAdmitUsers: an author cannot collect the users of a domain
// that the platform administrator has not assigned.
func TestOnlyAssignedDomainsAdmitUsers(t *testing.T) {
	t.Parallel()
	const issuer = "https://accounts.example"
	for name, test := range map[string]struct {
		assigned, domain string
		admitted         bool
	}{
		"nothing is assigned":                   {"", "acme.test", false},
		"a public mail domain":                  {"", "gmail.com", false},
		"another domain is assigned":            {"globex.test", "acme.test", false},
		"a suffix of the domain is assigned":    {"test", "acme.test", false},
		"the domain is assigned":                {"globex.test, acme.test", "acme.test", true},
		"every domain":                          {"*", "acme.test", true},
		"every domain, but a public mail one":   {"*", "gmail.com", false},
		"a public mail domain that is assigned": {"*,gmail.com", "gmail.com", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setupTrust(t, controllers.Config{})
			e.annotateNamespace(t, "mnemo.dev/oidc-domains", test.assigned)
			tn := e.newTenant("alice")
			tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: issuer, EmailDomains: []string{test.domain}}
			e.expectReady(t, tn)
			err := e.signIn(t, issuer, "mallory@"+test.domain)
			if test.admitted {
				if err != nil {
					t.Errorf("sign in: %v", err)
				}
				e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
				return
			}
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("sign in: got error %v, want Forbidden", err)
			}
			e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionFalse, "DomainNotAssigned",
				test.domain+": the platform administrator must assign it to namespace "+e.ns)
			e.expectNoWrites(t)
		})
	}
}

// TestWithdrawnDomainKeepsTheData: also with deletionPolicy Delete, because the
// author did not remove the domain.
func TestWithdrawnDomainKeepsTheData(t *testing.T) {
	t.Parallel()
	const issuer, annotation = "https://accounts.example", "mnemo.dev/oidc-domains"
	e := setupTrust(t, controllers.Config{})
	e.annotateNamespace(t, annotation, "acme.test")
	tn := e.newTenant("alice")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: issuer, EmailDomains: []string{"acme.test"}}
	e.expectReady(t, tn)
	if err := e.signIn(t, issuer, "bob@acme.test"); err != nil {
		t.Fatal(err)
	}
	e.annotateNamespace(t, annotation, "")
	e.expectReconciled(t)
	expectEqual(t, "users of the provider", e.tenant(t).Status.OIDCUsers, 0)
	if err := e.signIn(t, issuer, "bob@acme.test"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("sign in: got error %v, want Forbidden", err)
	}
	e.annotateNamespace(t, annotation, "acme.test")
	e.expectReconciled(t)
	if err := e.signIn(t, issuer, "bob@acme.test"); err != nil {
		t.Errorf("sign in with the domain assigned again: %v", err) // Conflict while data is being purged
	}
}

// TestMaximumQuota: an author who asks for more than the platform's maximum gets the
// maximum, in the database that enforces it.
func TestMaximumQuota(t *testing.T) {
	t.Parallel()
	maximum := tenant.DefaultQuota()
	maximum.Storage, maximum.Memories = 1<<40, 1_000_000
	e := setupTrust(t, controllers.Config{Maximum: maximum})
	tn := e.newTenant("alice")
	tn.Spec.Quota.Storage, tn.Spec.Quota.Memories = new(resource.MustParse("8Pi")), new(int64(900_000))
	e.expectReady(t, tn)
	e.expectCondition(t, v1alpha1.QuotaLimited, metav1.ConditionTrue, v1alpha1.ReasonAboveMaximum, "storage 1Ti instead of 8Pi;")
	usage := e.tenant(t).Status.Usage
	expectEqual(t, "storage", usage.Storage.Hard.String(), "1Ti")
	expectEqual(t, "memories", usage.Memories.Hard, 900_000)
	token := string(e.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken])
	identity, err := e.db.Identify(t.Context(), tenant.HashSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	expectEqual(t, "enforced storage", identity.Quota.Storage, 1<<40)
	e.expectNoWrites(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Quota.Storage = new(resource.MustParse("1Ti")) })
	e.expectReconciled(t)
	e.expectNoCondition(t, v1alpha1.QuotaLimited)
}

// TestMaximumPerUser: the quota of a single user does not exceed the tenant's, also if
// that is a default, which the validation of the Tenant does not know.
func TestMaximumPerUser(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.Quota.PerUser = &v1alpha1.UserQuota{Memories: new(int64(20_000)), Conversations: new(int64(500))}
	e.expectReady(t, tn)
	e.expectCondition(t, v1alpha1.QuotaLimited, metav1.ConditionTrue, v1alpha1.ReasonAboveMaximum,
		"spec.quota.perUser exceeds the tenant's quota; the tenant's quota is used instead: perUser.memories 10000 instead of 20000;")
	spec, _ := e.store.spec(e.id(t))
	expectEqual(t, "memories of a user", spec.Quota.UserMemories, tenant.DefaultQuota().Memories)
	expectEqual(t, "conversations of a user", spec.Quota.UserConversations, tenant.DefaultQuota().Conversations)
	e.expectNoWrites(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Quota.Memories = new(int64(30_000)) })
	e.expectReconciled(t)
	e.expectNoCondition(t, v1alpha1.QuotaLimited)
	spec, _ = e.store.spec(e.id(t))
	expectEqual(t, "memories of a user", spec.Quota.UserMemories, 20_000)

	// A maximum that lowers the tenant's quota lowers that of a user as well.
	maximum := tenant.DefaultQuota()
	maximum.Memories = 5
	e.use(t, controllers.Config{Maximum: maximum})
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.QuotaLimited, metav1.ConditionTrue, v1alpha1.ReasonAboveMaximum,
		"the maximum is used instead: memories 5 instead of 30000; lower spec.quota, or ask the platform administrator for a higher maximum. "+
			"spec.quota.perUser exceeds the tenant's quota; the tenant's quota is used instead: perUser.memories 5 instead of 20000;")
}

// TestMaximumUsers: listed users over the maximum get no access, and a lower maximum
// takes it from nobody.
func TestMaximumUsers(t *testing.T) {
	t.Parallel()
	maximum := tenant.DefaultQuota()
	maximum.Users = 2
	e := setupTrust(t, controllers.Config{Maximum: maximum})
	e.mustCreate(t, e.newTenant("alice", "bob", "carol"))
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonTooManyUsers, "maximum of 2; without access: carol;")
	e.expectCondition(t, v1alpha1.Stalled, metav1.ConditionTrue, v1alpha1.ReasonTooManyUsers, "")
	e.expectMissing(t, &corev1.Secret{}, "acme-carol-access")
	e.expectNoWrites(t)

	maximum.Users = 1
	e.use(t, controllers.Config{Maximum: maximum})
	e.expectReconciled(t)
	e.secret(t, "acme-bob-access")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[1:] })
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonTooManyUsers, "carol")

	maximum.Users = 2
	e.use(t, controllers.Config{Maximum: maximum})
	e.expectReconciled(t)
	e.secret(t, "acme-carol-access")
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}
