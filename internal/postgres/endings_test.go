package postgres_test

import (
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ending is a way in which a user's access may end, and whether a credential survives it.
type ending struct {
	end   func(t *testing.T, g *grantEnv)
	valid bool
}

// endings are those that grants and created tokens have in common. works checks the
// credential in between.
func endings(works func(g *grantEnv, t *testing.T, n byte, want bool)) map[string]ending {
	return map[string]ending{
		"new password": {func(t *testing.T, g *grantEnv) { g.install(t, 2, tenant.Hash{98, 2}) }, false},
		"password replaced in the dashboard": {func(t *testing.T, g *grantEnv) {
			if err := g.ReplacePassword(t.Context(), g.scope, g.session, tenant.Hash{98, 2}); err != nil {
				t.Error(err)
			}
		}, false},
		"token replaced in the dashboard": {func(t *testing.T, g *grantEnv) {
			if _, err := g.ReplaceToken(t.Context(), g.scope, tenant.Hash{97}); err != nil {
				t.Error(err)
			}
		}, true},
		"signed out": {func(t *testing.T, g *grantEnv) {
			if err := g.EndSession(t.Context(), g.session); err != nil {
				t.Error(err)
			}
		}, true},
		"user removed and added again": {func(t *testing.T, g *grantEnv) {
			spec := g.specs[0]
			spec.Users = slices.DeleteFunc(slices.Clone(spec.Users), func(u tenant.UserSpec) bool { return u.Name == g.name })
			g.apply(t, spec)
			works(g, t, 1, false)
			g.apply(t, g.specs[0])
		}, false},
		"another user removed": {func(t *testing.T, g *grantEnv) {
			spec := g.specs[0]
			spec.Users = []tenant.UserSpec{{Name: g.name}}
			g.apply(t, spec)
		}, true},
		"tenant revoked": {func(t *testing.T, g *grantEnv) {
			if _, err := g.Revoke(t.Context(), g.scope.Tenant); err != nil {
				t.Error(err)
			}
		}, false},
		"account purged":       {func(t *testing.T, g *grantEnv) { g.purge(t, g.scope) }, false},
		"other account purged": {func(t *testing.T, g *grantEnv) { g.purge(t, g.users[1]) }, true},
	}
}
