package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxNamed bounds what a condition message names.
const maxNamed = 5

// maxChanged bounds the users whose credentials a pass changes.
const maxChanged = 50

// ensureTokens gives each listed user a Secret with a valid token and deletes
// the Secrets of all other users. A pass changes at most maxChanged users, so that
// a Tenant with many users does not delay the others.
func (r *TenantReconciler) ensureTokens(ctx context.Context, p *pass) error {
	listed := p.secretNames()
	// First, because a failing user must not delay the removal of another one.
	failed := r.deleteSecrets(ctx, p.tenant, func(s *corev1.Secret) bool { return !listed[s.Name] })
	users, err := r.inspect(ctx, p)
	if err != nil {
		failed = errors.Join(failed, err)
	}
	stopped := r.changeDue(ctx, p, users)
	listedUsers := min(len(p.stored.Users), len(users)) // none if the Secrets could not be listed
	p.setUsers(users[:listedUsers])
	p.setApplications(users[listedUsers:])
	p.continues = !stopped && failed == nil && slices.ContainsFunc(users, userAccess.isDue)
	if p.continues {
		p.setIssuing(users)
		return nil
	}
	r.rounds.end(p.tenant.UID)
	var conflicts []string
	for _, u := range users {
		switch {
		case errors.Is(u.err, errSecretConflict):
			conflicts = append(conflicts, secretName(p.tenant, u.Name))
		case u.err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", subject(u.Name), u.err))
		}
	}
	if failed == nil && len(conflicts) == 0 {
		p.setRotated()
	}
	return p.setTokensReady(conflicts, failed)
}

// inspect compares the Secrets of the users, and then of the applications, in the cache
// with the desired state.
func (r *TenantReconciler) inspect(ctx context.Context, p *pass) ([]userAccess, error) {
	secrets, err := r.secretsByName(ctx, p.tenant)
	if err != nil {
		return nil, err
	}
	holders := slices.Concat(p.stored.Users, p.stored.Applications)
	users := make([]userAccess, 0, len(holders))
	for _, u := range holders {
		a := userAccess{User: u, secret: secrets[secretName(p.tenant, u.Name)]}
		a.desired = access{generation: p.tokenGeneration(u.Name), rotation: rotation(p.tenant)}
		if a.priority = r.priority(p.tenant, a); a.isDue() {
			// Users who failed in this round are retried after the others.
			a.err = r.rounds.failure(p.tenant.UID, u.Name)
		}
		users = append(users, a)
	}
	return users, nil
}

// changeDue changes the users that are due, the most urgent first, until the limit
// of the pass. stopped means that the others would fail too.
func (r *TenantReconciler) changeDue(ctx context.Context, p *pass, users []userAccess) (stopped bool) {
	var due []*userAccess
	for i := range users {
		if users[i].isDue() {
			due = append(due, &users[i])
		}
	}
	slices.SortStableFunc(due, func(a, b *userAccess) int { return cmp.Compare(a.priority, b.priority) })
	for _, u := range due[:min(len(due), maxChanged)] {
		if u.status, u.err = r.ensureToken(ctx, p, *u); u.err == nil {
			u.priority = upToDate
			continue
		}
		r.rounds.fail(p.tenant.UID, u.Name, u.err)
		if fault.Is(u.err, fault.Unavailable) || errors.Is(u.err, errStalled) {
			return true
		}
	}
	return false
}

// setRotated records that every token was replaced for the current value of
// annotation mnemo.dev/rotate.
func (p *pass) setRotated() {
	value := rotation(p.tenant)
	if value == "" || value == p.tenant.Status.Rotated {
		return
	}
	p.tenant.Status.Rotated = value
	p.recordNormal("Rotated", "replaced the credentials of every user and application for %s=%s", v1alpha1.AnnotationRotate, value)
}

// setTokensReady sets the condition from the results of all users.
func (p *pass) setTokensReady(conflicts []string, failed error) error {
	switch {
	case errors.Is(failed, errStalled):
		p.setCondition(v1alpha1.TokensReady, false, v1alpha1.ReasonWaiting, "the namespace is being deleted and accepts no Secrets")
		return errStalled
	case isConflict(failed):
		return failed // the condition stays as it is
	case failed != nil:
		p.setFailed(v1alpha1.TokensReady, failed)
		return failed
	case len(conflicts) > 0:
		p.setCondition(v1alpha1.TokensReady, false, v1alpha1.ReasonSecretConflict,
			"not owned by this Tenant and therefore not changed: Secret %s; delete or rename it", listSome(conflicts))
		return errStalled
	}
	if refused := p.stored.RefusedUsers; len(refused) > 0 {
		p.setCondition(v1alpha1.TokensReady, false, v1alpha1.ReasonTooManyUsers,
			"spec.users lists more users than the platform's maximum of %d; without access: %s; remove users, or ask the platform administrator for a higher maximum",
			p.stored.Quota.Users, listSome(refused))
		return errStalled
	}
	p.setCondition(v1alpha1.TokensReady, true, v1alpha1.ReasonIssued, "the Secret of every user and application holds the current credentials")
	return nil
}

// setIssuing sets the condition while further passes change the remaining users.
func (p *pass) setIssuing(users []userAccess) {
	p.unfinished, p.progress = true, "credentials are being issued; see status.userCounts for progress"
	switch {
	case slices.ContainsFunc(users, func(u userAccess) bool { return u.isDue() && !u.hasAccess() }):
		p.setCondition(v1alpha1.TokensReady, false, v1alpha1.ReasonWaiting, "%s", p.progress)
	case meta.IsStatusConditionTrue(p.tenant.Status.Conditions, v1alpha1.TokensReady):
		p.progress = "credentials are being replaced; each user's previous ones stay valid until then"
		p.setCondition(v1alpha1.TokensReady, true, v1alpha1.ReasonIssued, "%s", p.progress)
	}
}

// listSome joins at most maxNamed names and says how many more there are.
func listSome(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
