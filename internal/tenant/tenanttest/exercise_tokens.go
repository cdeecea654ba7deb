package tenanttest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func installMonotonic(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.install(t, "alice", 1)
	third := f.install(t, "alice", 3)
	for _, generation := range []int64{1, 2, 3} {
		err := b.Tokens.Install(t.Context(), f.got.ID, "alice", credential(generation))
		wantKind(t, err, fault.Conflict)
	}
	f.wantValid(t, first) // both are valid until the older is revoked
	f.wantValid(t, third)
	f.install(t, "bob", 1) // generations are per user
	f.apply(t)
	got := f.user(t, "alice").Token
	want := &tenant.TokenInfo{Generation: 3, Fingerprint: third.Fingerprint(), Issuer: tenant.IssuerOperator}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tenant.TokenInfo{}, "CreatedAt", "LastUsedAt")); diff != "" {
		t.Errorf("the newest token (-want +got):\n%s", diff)
	}
	if age := time.Since(got.CreatedAt); age < -time.Minute || age > time.Hour {
		t.Errorf("the token was created at %v, want now", got.CreatedAt)
	}
}

func installConcurrent(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	credentials := make([]tenant.Credential, 8)
	for i := range credentials {
		credentials[i] = credential(1)
	}
	errs := concurrently(t.Context(), len(credentials), func(ctx context.Context, i int) error {
		return b.Tokens.Install(ctx, f.got.ID, "alice", credentials[i])
	})
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			f.wantValid(t, credentials[i].TokenHash)
			continue
		}
		wantKind(t, err, fault.Conflict)
		f.wantRevoked(t, credentials[i].TokenHash)
	}
	if winners != 1 {
		t.Errorf("generation 1 was installed %d times, want once", winners)
	}
}

func revokeOlder(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first, bob := f.install(t, "alice", 1), f.install(t, "bob", 1)
	second := f.install(t, "alice", 2)
	for range 2 {
		if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, 0); err != nil {
			t.Fatalf("RevokeOlder: %v", err)
		}
	}
	f.wantRevoked(t, first)
	f.wantValid(t, second)
	f.wantValid(t, bob)
	if f.apply(t); f.user(t, "alice").Unrevoked {
		t.Error("after RevokeOlder, a token is reported as unrevoked")
	}
	again := tenant.Credential{Generation: 3, TokenHash: first, Issuer: tenant.IssuerOperator}
	if err := b.Tokens.Install(t.Context(), f.got.ID, "alice", again); err == nil {
		t.Error("a revoked hash was installed again")
	}
}

func revokeOverlap(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.install(t, "alice", 1)
	second := f.install(t, "alice", 2)
	f.spec.TokenOverlap = 3 * time.Hour
	if f.apply(t); !f.user(t, "alice").Unrevoked {
		t.Error("before RevokeOlder, no token is reported as unrevoked")
	}
	revoke := func(overlap time.Duration) {
		t.Helper()
		if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, overlap); err != nil {
			t.Fatalf("RevokeOlder: %v", err)
		}
	}
	revoke(time.Hour)
	if f.apply(t); f.user(t, "alice").Unrevoked {
		t.Error("during the overlap, a token is reported as unrevoked")
	}
	old := f.wantValid(t, first)
	if left := time.Until(old.ExpiresAt); left < 58*time.Minute || left > 61*time.Minute {
		t.Errorf("the old token is valid for %v, want an hour", left)
	}
	if now := f.wantValid(t, second); !now.ExpiresAt.IsZero() {
		t.Errorf("the new token expires at %v, want never", now.ExpiresAt)
	}
	revoke(3 * time.Hour)
	if now := f.wantValid(t, first); now.ExpiresAt.After(old.ExpiresAt.Add(time.Second)) {
		t.Errorf("a second revocation changed the expiry from %v to %v", old.ExpiresAt, now.ExpiresAt)
	}
	f.apply(t)
	if got := f.user(t, "alice").Token; got.Fingerprint != second.Fingerprint() {
		t.Errorf("the newest token is %+v, want generation 2", got)
	}
	revoke(0)
	f.wantRevoked(t, first)
	f.wantValid(t, second)
}

func overlapEnds(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.install(t, "alice", 1)
	f.install(t, "alice", 2)
	if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, time.Millisecond); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		_, err := b.Tokens.Identify(t.Context(), first)
		if err != nil {
			wantKind(t, err, fault.Unauthorized)
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an overlap of one millisecond has not ended after 10 seconds")
		}
	}
}

// overlapFromInstall revokes late, like an operator that was down meanwhile: the
// delay must not extend the old token.
func overlapFromInstall(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.install(t, "alice", 1)
	second := f.install(t, "alice", 2)
	const overlap = 300 * time.Millisecond
	for installed := time.Now(); time.Since(installed) < overlap; {
		f.wantValid(t, second) // the overlap passes
	}
	if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, overlap); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	f.wantRevoked(t, first)
	f.wantValid(t, second)
}

func overlapShortened(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	f.spec.TokenOverlap = time.Hour
	f.apply(t)
	first := f.install(t, "alice", 1)
	second := f.install(t, "alice", 2)
	if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, time.Hour); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	f.spec.TokenOverlap = 2 * time.Hour
	f.apply(t)
	if left := time.Until(f.wantValid(t, first).ExpiresAt); left > 61*time.Minute {
		t.Errorf("after a longer overlap, the old token is valid for %v, want its previous expiry", left)
	}
	f.spec.TokenOverlap = 0
	f.apply(t)
	f.wantRevoked(t, first)
	f.wantValid(t, second)
}

func userReplaces(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	scope := f.scope(t, "alice")
	if got, err := b.Access.Token(t.Context(), scope); err != nil || got != nil {
		t.Errorf("Token without a token = %+v, %v, want nil", got, err)
	}
	first, bob := f.install(t, "alice", 3), f.install(t, "bob", 1)
	mine := tenant.HashSecret("mine")
	info, err := b.Access.ReplaceToken(t.Context(), scope, mine)
	if err != nil {
		t.Fatalf("ReplaceToken: %v", err)
	}
	want := tenant.TokenInfo{Generation: 4, Fingerprint: mine.Fingerprint(), Issuer: tenant.IssuerUser}
	ignored := cmpopts.IgnoreFields(tenant.TokenInfo{}, "CreatedAt", "LastUsedAt")
	if diff := cmp.Diff(want, info, ignored); diff != "" {
		t.Errorf("ReplaceToken (-want +got):\n%s", diff)
	}
	f.wantRevoked(t, first)
	f.wantValid(t, mine)
	f.wantValid(t, bob)
	if got, err := b.Access.Token(t.Context(), scope); err != nil || !cmp.Equal(&want, got, ignored) {
		t.Errorf("Token = %+v, %v, want the token just created", got, err)
	}
	f.apply(t)
	if diff := cmp.Diff(&want, f.user(t, "alice").Token, ignored); diff != "" {
		t.Errorf("the token of the stored user (-want +got):\n%s", diff)
	}
	again := tenant.HashSecret("mine again")
	if _, err := b.Access.ReplaceToken(t.Context(), scope, again); err != nil {
		t.Fatalf("ReplaceToken again: %v", err)
	}
	f.wantRevoked(t, mine)
	f.wantValid(t, again)
}

func replaceForbidden(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	alice, bob := f.scope(t, "alice"), f.scope(t, "bob")
	refused := func(scope tenant.Scope) {
		t.Helper()
		_, err := b.Access.ReplaceToken(t.Context(), scope, tenant.HashSecret("stranger"))
		wantKind(t, err, fault.Forbidden)
	}
	refused(tenant.Scope{Tenant: other.got.ID, User: alice.User})
	f.spec.Users = []tenant.UserSpec{{Name: "bob"}}
	f.apply(t)
	refused(alice)
	f.install(t, "bob", 1)
	f.retire(t, tenant.Retain)
	refused(bob)
}

func identify(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	f.wantRevoked(t, tenant.HashSecret("mn_nobody"))
	f.wantRevoked(t, tenant.Hash{})
	placement, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	hash := f.install(t, "alice", 1)
	want := tenant.Identity{
		Scope: f.scope(t, "alice"), Actor: tenant.TokenActor(hash), Access: tenant.FullAccess, TenantName: "acme", UserName: "alice",
		Quota: f.spec.Quota, Placement: placement, Generation: 1,
	}
	if diff := cmp.Diff(want, f.wantValid(t, hash)); diff != "" {
		t.Errorf("Identify (-want +got):\n%s", diff)
	}
	f.spec.Suspended, f.spec.Quota.Memories = true, 1
	f.apply(t)
	want.Suspended, want.Quota.Memories = true, 1
	if diff := cmp.Diff(want, f.wantValid(t, hash)); diff != "" {
		t.Errorf("Identify of a suspended tenant (-want +got):\n%s", diff)
	}
}

func removedUser(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	alice, bob := f.install(t, "alice", 4), f.install(t, "bob", 1)
	f.spec.Users = []tenant.UserSpec{{Name: "bob"}}
	f.apply(t)
	f.wantRevoked(t, alice)
	f.wantValid(t, bob)
	wantKind(t, b.Tokens.Install(t.Context(), f.got.ID, "alice", credential(5)), fault.NotFound)

	f.spec.Users = append(f.spec.Users, tenant.UserSpec{Name: "alice"})
	f.apply(t)
	f.wantRevoked(t, alice)
	if got := f.user(t, "alice").Token; got == nil || got.Fingerprint != "" || got.Generation != 4 {
		t.Errorf("alice's token is %+v, want generation 4 without a fingerprint", got)
	}
	wantKind(t, b.Tokens.Install(t.Context(), f.got.ID, "alice", credential(4)), fault.Conflict)
	f.wantValid(t, f.install(t, "alice", 5))
}

func removedWithDelete(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	f.spec.DeletionPolicy = tenant.Delete
	f.apply(t)
	hash, alice, bob := f.install(t, "alice", 4), f.user(t, "alice").ID, f.user(t, "bob").ID
	all := f.spec.Users
	f.spec.Users = []tenant.UserSpec{{Name: "bob"}}
	f.apply(t)
	f.wantRevoked(t, hash)
	f.spec.Users = all
	f.apply(t) // while the previous user's data is being purged
	f.wantRevoked(t, hash)
	f.wantValid(t, f.install(t, "alice", 1))
	b.Work(t)
	f.apply(t)
	if now := f.user(t, "alice"); now.ID == alice || now.Token == nil || now.Token.Generation != 1 {
		t.Errorf("alice is %+v, want an id other than %d and a token of generation 1", now, alice)
	}
	if now := f.user(t, "bob").ID; now != bob {
		t.Errorf("bob has id %d, want %d", now, bob)
	}
}

func userIssues(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.install(t, "alice", 1)
	mine := credential(2)
	mine.Issuer, mine.PasswordHash = tenant.IssuerUser, tenant.Hash{}
	if err := b.Tokens.Install(t.Context(), f.got.ID, "alice", mine); err != nil {
		t.Fatalf("Install by the user: %v", err)
	}
	if err := b.Tokens.RevokeOlder(t.Context(), f.got.ID, "alice", 2, 0); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	f.wantRevoked(t, first)
	f.apply(t)
	if got := f.user(t, "alice").Token; got.Issuer != tenant.IssuerUser || got.Generation != 2 {
		t.Errorf("the token is %+v, want generation 2 issued by the user", got)
	}
}
