package dashboard_test

import (
	"iter"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// external signs in a user of an identity provider.
func (s *site) external(t *testing.T, issuer, email string) error {
	t.Helper()
	return s.db.SignInExternal(t.Context(), tenant.ExternalSignIn{
		ExternalUser: tenant.ExternalUser{Issuer: issuer, Subject: email, Email: email}, Address: "192.0.2.7",
		Session: tenant.HashSecret(email + time.Now().String()), Lifetime: time.Hour,
	})
}

// administers: an administrator sees the members, keys and quotas of their tenant only,
// no texts of others, removes a user of the identity provider, and exports the audit log.
// Others are refused.
func administers(t *testing.T, s *site, b *browser) {
	domain := "admin-" + strings.ToLower(t.Name()[len("TestDashboard/"):]) + ".test"
	users := s.newTenant(t, func(spec *tenant.Spec) {
		spec.Administrators = []string{"alice"}
		spec.OIDC = tenant.OIDC{Issuer: "https://id.test", Domains: []string{domain}}
		spec.Applications = []tenant.ApplicationSpec{{Name: "backend", Scopes: []string{"read", "write"}, RequestsPerMinute: tenant.NoLimit}}
	}, "alice", "bob")
	strangers := s.newTenant(t, func(spec *tenant.Spec) { spec.Administrators = []string{"carol"} }, "carol")
	s.store(t, users[1], "2025-05-09 Bob keeps a secret.")
	ann := "ann@" + domain
	if err := s.external(t, "https://id.test", ann); err != nil {
		t.Fatal(err)
	}
	s.refusesMembers(t, users[1])

	tab := b.newContext(t, s.urls[0])
	tab.signIn(users[0])
	tab.open("/usage")
	tab.click(".tabs a[href='/admin']")
	for _, text := range []string{"alice", "administrator", "bob", "1 memory", ann, "backend", "read, write", "no key yet"} {
		tab.sees(text)
	}
	for _, text := range []string{"carol", "secret"} {
		tab.seesNot(text)
	}
	tab.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	tab.looksEverywhere("visual-admin")
	tab.click("form[action='/admin/members/remove'] button")
	tab.sees("Access removed.")
	tab.sees("Removed")
	if err := s.external(t, "https://id.test", ann); err == nil {
		t.Error("a removed user signs in")
	}
	tab.click("form[action='/admin/members/restore'] button")
	tab.sees("Access restored.")
	if err := s.external(t, "https://id.test", ann); err != nil {
		t.Errorf("sign-in after the access was permitted again: %v", err)
	}
	s.refusesOtherTenants(t, strangers[0], ann)
	s.exportsAudit(t, users[0])
}

// refusesMembers: users who are no administrators see and change nothing.
func (s *site) refusesMembers(t *testing.T, u user) {
	t.Helper()
	v := s.visitor(t, 0)
	v.signIn(t, u)
	if _, page := v.get(t, "/usage"); strings.Contains(page, "/admin") {
		t.Error("the pages of a member lead to those of administrators")
	}
	if status, page := v.get(t, "/admin"); status != 403 || strings.Contains(page, "alice") {
		t.Errorf("GET /admin of a member: %d, want 403", status)
	}
	for _, path := range []string{"/admin/members/remove", "/admin/members/restore", "/admin/audit"} {
		if status, _ := v.post(t, path, url.Values{"email": {"x@y.test"}}); status != 403 {
			t.Errorf("POST %s of a member: %d, want 403", path, status)
		}
	}
}

// refusesOtherTenants: an administrator changes only users of their own tenant, and not
// themselves.
func (s *site) refusesOtherTenants(t *testing.T, u user, email string) {
	t.Helper()
	v := s.visitor(t, 1)
	v.signIn(t, u)
	for path, want := range map[string]int{"/admin/members/remove": 404, "/admin/members/restore": 404} {
		if status, _ := v.post(t, path, url.Values{"email": {email}}); status != want {
			t.Errorf("POST %s for a user of another tenant: %d, want %d", path, status, want)
		}
	}
	if status, _ := v.post(t, "/admin/members/remove", nil); status != 400 {
		t.Errorf("removing oneself: %d, want 400", status)
	}
	for _, path := range []string{"/admin?after=%00", "/admin?after=zzz"} {
		status, page := v.get(t, path)
		if want := map[bool]int{true: 400, false: 200}[strings.Contains(path, "%00")]; status != want || strings.Contains(page, email) {
			t.Errorf("GET %s: %d, want %d without users of another tenant", path, status, want)
		}
	}
}

// exportsAudit: the export verifies, contains the administrator's changes, and no texts.
func (s *site) exportsAudit(t *testing.T, u user) {
	t.Helper()
	v := s.visitor(t, 1)
	v.signIn(t, u)
	status, file := v.post(t, "/admin/audit", nil)
	verified, err := audit.Verify(strings.NewReader(file))
	if status != 200 || err != nil || verified.Header.Tenant != u.Tenant || strings.Contains(file, "secret") {
		t.Errorf("audit log: %d, %+v, %v; want a valid file of the tenant without texts", status, verified, err)
	}
	found := map[audit.Verb]bool{}
	err = s.db.TenantRecords(t.Context(), u.Tenant, func(_ audit.Head, all iter.Seq2[audit.Record, error]) error {
		for r, err := range all {
			if err != nil {
				return err
			}
			if r.Actor == string(tenant.ActorUser) && r.Via == tenant.ViaSession {
				found[r.Verb] = true
			}
		}
		return nil
	})
	for _, verb := range []audit.Verb{audit.UserDeactivate, audit.TenantReadmit, audit.AuditExport} {
		if err != nil || !found[verb] {
			t.Errorf("no record of %s by a session, %v", verb, err)
		}
	}
}
