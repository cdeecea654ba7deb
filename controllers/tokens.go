package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxNamedSecrets and maxNamedUsers bound what a condition message names.
const (
	maxNamedSecrets = 5
	maxNamedUsers   = 5
)

// ensureTokens gives each listed user a Secret with a valid token and deletes
// the Secrets of all other users.
func (r *TenantReconciler) ensureTokens(ctx context.Context, p *pass) error {
	var users userStatuses
	listed := p.secretNames()
	// First, because a failing user must not delay the removal of another one.
	failed := r.deleteSecrets(ctx, p.tenant, func(s *corev1.Secret) bool { return !listed[s.Name] })
	for _, u := range p.stored.Users {
		status, err := r.ensureToken(ctx, p, u)
		switch {
		case err == nil:
			users.addReady(status)
		case errors.Is(err, errSecretConflict):
			users.addConflict(p.userStatus(u.Name), secretName(p.tenant, u.Name))
		default:
			failed = errors.Join(failed, fmt.Errorf("user %s: %w", u.Name, err))
			users.addFailed(p.userStatus(u.Name), err)
		}
		if fault.Is(err, fault.Unavailable) || errors.Is(err, errStalled) {
			users.incomplete = true // it would be the same for the next user
			break
		}
	}
	p.setUsers(&users)
	if failed == nil && len(users.conflicts) == 0 {
		p.setRotated()
	}
	return p.setTokensReady(users.conflicts, failed)
}

// setRotated records that every token was replaced for the current value of
// annotation mnemo.dev/rotate.
func (p *pass) setRotated() {
	value := rotation(p.tenant)
	if value == "" || value == p.tenant.Status.Rotated {
		return
	}
	p.tenant.Status.Rotated = value
	p.recordNormal("Rotated", "replaced the token and password of every user for %s=%s", v1alpha1.AnnotationRotate, value)
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
			"not owned by this Tenant and therefore not changed: Secret %s; delete or rename it", listSome(conflicts, maxNamedSecrets))
		return errStalled
	}
	if refused := p.stored.RefusedUsers; len(refused) > 0 {
		p.setCondition(v1alpha1.TokensReady, false, v1alpha1.ReasonTooManyUsers,
			"spec.users lists more users than the platform's maximum of %d; without access: %s; remove users, or ask the platform administrator for a higher maximum",
			p.stored.Quota.Users, listSome(refused, maxNamedUsers))
		return errStalled
	}
	p.setCondition(v1alpha1.TokensReady, true, v1alpha1.ReasonIssued, "every user's Secret holds the current credentials")
	return nil
}

// listSome joins at most n names and says how many more there are.
func listSome(names []string, n int) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// ensureToken brings one user's Secret up to date. A crash between the three
// writes of issue leaves a state that the next call repairs: a hash without a
// Secret is superseded by a new one, and the store reports older hashes that
// were not revoked.
func (r *TenantReconciler) ensureToken(ctx context.Context, p *pass, u tenant.User) (v1alpha1.UserStatus, error) {
	desired := access{generation: p.tokenGeneration(u.Name), rotation: rotation(p.tenant)}
	secret, err := r.findSecret(ctx, p.tenant, u)
	if err != nil {
		return v1alpha1.UserStatus{}, err
	}
	if reason := issueReason(secret, u.Token, desired); reason != "" && secret != nil {
		// The cache may be stale, which is no reason to issue a token.
		if secret, err = r.readSecret(ctx, p.tenant, u.Name); err != nil {
			return v1alpha1.UserStatus{}, err
		}
	}
	token := u.Token
	if reason := issueReason(secret, token, desired); reason != "" {
		token, err = r.issueAndRecord(ctx, p, u, secret, desired, reason)
	} else if err = r.repairSecret(ctx, p.tenant, u, secret); err == nil {
		err = r.finishRotation(ctx, p, u)
	}
	if err != nil {
		return v1alpha1.UserStatus{}, err
	}
	managedBy := v1alpha1.ManagedByOperator
	if token.Issuer == tenant.IssuerUser {
		managedBy = v1alpha1.ManagedByUser
	}
	return v1alpha1.UserStatus{
		Name: u.Name, Secret: secretName(p.tenant, u.Name), Fingerprint: token.Fingerprint,
		TokenGeneration: desired.generation, Issued: token.Generation, ManagedBy: managedBy,
	}, nil
}

// issueReason says why the user needs a new token, "" if not.
func issueReason(secret *corev1.Secret, token *tenant.TokenInfo, desired access) string {
	switch {
	case secret == nil && token == nil:
		return "first token"
	case secret == nil:
		return "the Secret was missing"
	case token == nil || token.Fingerprint == "":
		return "the previous token was revoked"
	case annotatedGeneration(secret) < desired.generation:
		return "tokenGeneration was raised to " + strconv.FormatInt(desired.generation, 10)
	case desired.rotation != "" && secret.Annotations[v1alpha1.AnnotationRotated] != desired.rotation:
		return v1alpha1.AnnotationRotate + "=" + desired.rotation
	case token.Issuer == tenant.IssuerUser:
		return "" // only the user has it
	case tenant.HashSecret(string(secret.Data[v1alpha1.SecretToken])).Fingerprint() != token.Fingerprint:
		return "the Secret did not hold the current token"
	case passwordFingerprint(secret) != secret.Annotations[v1alpha1.AnnotationPasswordFingerprint]:
		return "the Secret did not hold the password issued with the token"
	}
	return ""
}

func (r *TenantReconciler) issueAndRecord(
	ctx context.Context, p *pass, u tenant.User, secret *corev1.Secret, desired access, reason string,
) (*tenant.TokenInfo, error) {
	token, err := r.issue(ctx, p, u, secret, desired)
	if secret == nil && apierrors.IsAlreadyExists(err) {
		if _, conflict := r.readSecret(ctx, p.tenant, u.Name); conflict != nil {
			err = conflict
		}
	}
	if err != nil {
		return nil, fmt.Errorf("issue token: %w", err)
	}
	// First tokens and a rotation of all users would record an event per user.
	if u.Token != nil && !strings.HasPrefix(reason, v1alpha1.AnnotationRotate) {
		p.recordNormal("TokenIssued", "issued a new token and password for user %s: %s", u.Name, reason)
	}
	return token, nil
}

// issue replaces token and password: it installs the new hash, writes the Secret
// and revokes the older hashes. A missing Secret means that access is to be
// withdrawn, so the older hashes are then revoked before the write.
func (r *TenantReconciler) issue(ctx context.Context, p *pass, u tenant.User, secret *corev1.Secret, a access) (*tenant.TokenInfo, error) {
	var err error
	if a.token, err = tenant.NewToken(r.config.Random); err != nil {
		return nil, err
	}
	if a.password, err = tenant.NewPassword(r.config.Random); err != nil {
		return nil, err
	}
	desired, err := r.secretWith(p.tenant, u.Name, secret, a)
	if err != nil {
		return nil, err
	}
	// A write that will be refused (a quota, a namespace being deleted) must be
	// known before a hash is installed, or each retry would leave one behind. First
	// tokens skip the dry run, which would double the requests for a thousand new
	// users; publish revokes the hash instead.
	if u.Token != nil {
		if err := r.writeSecret(ctx, secret == nil, desired, true); err != nil {
			return nil, err
		}
	}
	c := tenant.Credential{
		Generation: 1, TokenHash: tenant.HashSecret(a.token), PasswordHash: tenant.HashSecret(a.password),
		Issuer: tenant.IssuerOperator,
	}
	if u.Token != nil {
		c.Generation = u.Token.Generation + 1
	}
	if err := r.tokens.Install(ctx, p.stored.ID, u.Name, c); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	if secret == nil && u.Token != nil {
		if err := r.revokeOlder(ctx, p, u.Name, c.Generation, 0); err != nil {
			return nil, err
		}
	}
	if err := r.publish(ctx, p, u, secret == nil, desired, c.Generation); err != nil {
		return nil, err
	}
	if secret != nil {
		if err := r.revokeOlder(ctx, p, u.Name, c.Generation, p.tenant.Spec.TokenOverlap.Duration); err != nil {
			return nil, err
		}
	}
	r.metrics.issued.Inc()
	return &tenant.TokenInfo{Generation: c.Generation, Fingerprint: c.TokenHash.Fingerprint(), Issuer: c.Issuer}, nil
}

// publish writes the Secret. If the API server refuses a user's first Secret,
// the token in it is revoked, because nobody received it.
func (r *TenantReconciler) publish(ctx context.Context, p *pass, u tenant.User, create bool, secret *corev1.Secret, generation int64) error {
	err := r.writeSecret(ctx, create, secret, false)
	if u.Token == nil && isRefused(err) {
		return errors.Join(err, r.revokeOlder(ctx, p, u.Name, generation+1, 0))
	}
	return err
}

// isRefused reports whether the API server answered that it refuses the write.
func isRefused(err error) bool {
	return errors.Is(err, errStalled) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}

// finishRotation revokes the older tokens that an earlier pass did not.
func (r *TenantReconciler) finishRotation(ctx context.Context, p *pass, u tenant.User) error {
	if !u.Unrevoked {
		return nil
	}
	overlap := p.tenant.Spec.TokenOverlap.Duration
	if u.Token.Issuer == tenant.IssuerUser {
		overlap = 0 // a user who regenerates the token revokes the old one at once
	}
	return r.revokeOlder(ctx, p, u.Name, u.Token.Generation, overlap)
}

func (r *TenantReconciler) revokeOlder(ctx context.Context, p *pass, user string, generation int64, overlap time.Duration) error {
	if err := r.tokens.RevokeOlder(ctx, p.stored.ID, user, generation, overlap); err != nil {
		return fmt.Errorf("revoke older tokens: %w", err)
	}
	return nil
}
