package controllers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ensureToken brings one user's Secret up to date. A crash between the three
// writes of issue leaves a state that the next call repairs: a hash without a
// Secret is superseded by a new one, and the store reports older hashes that
// were not revoked.
func (r *TenantReconciler) ensureToken(ctx context.Context, p *pass, a userAccess) (v1alpha1.UserStatus, error) {
	u, token := a.User, a.Token
	var secret *corev1.Secret
	var err error
	if a.secret != nil || token != nil {
		// The cache may be stale, which is no reason to issue a token, and it holds no values.
		secret, err = r.readSecret(ctx, p.tenant, secretName(p.tenant, u.Name))
	} else {
		// Creating the first Secret fails if there is one that is not cached.
		err = r.checkConflict(ctx, p.tenant, u.Name)
	}
	if err != nil {
		return v1alpha1.UserStatus{}, err
	}
	if reason := issueReason(u, withoutValues(secret), a.desired); reason != "" {
		token, err = r.issueAndRecord(ctx, p, u, secret, a.desired, reason)
	} else if err = r.repairSecret(ctx, p.tenant, u, secret); err == nil {
		err = r.finishRotation(ctx, p, u)
	}
	if err != nil {
		return v1alpha1.UserStatus{}, err
	}
	return readyStatus(p.tenant, u.Name, a.desired.generation, token), nil
}

// issueReason says why the user needs a new token, "" if not. The Secret is one
// without values.
func issueReason(u tenant.User, secret *corev1.Secret, desired access) string {
	switch token := u.Token; {
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
	case secret.StringData[v1alpha1.SecretToken] != token.Fingerprint:
		return "the Secret did not hold the current token"
	case !hasPassword(u.Name), u.PasswordReplaced: // as above
		return ""
	case secret.StringData[v1alpha1.SecretPassword] == "",
		secret.StringData[v1alpha1.SecretPassword] != secret.Annotations[v1alpha1.AnnotationPasswordFingerprint]:
		return "the Secret did not hold the password issued with the token"
	}
	return ""
}

func (r *TenantReconciler) issueAndRecord(
	ctx context.Context, p *pass, u tenant.User, secret *corev1.Secret, desired access, reason string,
) (*tenant.TokenInfo, error) {
	token, err := r.issue(ctx, p, u, secret, desired)
	if secret == nil && apierrors.IsAlreadyExists(err) {
		if _, conflict := r.readSecret(ctx, p.tenant, secretName(p.tenant, u.Name)); conflict != nil {
			err = conflict
		}
	}
	if err != nil {
		return nil, fmt.Errorf("issue token: %w", err)
	}
	// First tokens and a rotation of all users would record an event per user.
	if u.Token != nil && !strings.HasPrefix(reason, v1alpha1.AnnotationRotate) {
		what := "token and password"
		if !hasPassword(u.Name) {
			what = "key"
		}
		p.recordNormal("TokenIssued", "issued a new %s for %s: %s", what, subject(u.Name), reason)
	}
	return token, nil
}

// issue replaces token and password: it installs the new hash, writes the Secret
// and revokes the older hashes. A missing Secret means that access is to be
// withdrawn, so the older hashes are then revoked before the write.
func (r *TenantReconciler) issue(ctx context.Context, p *pass, u tenant.User, secret *corev1.Secret, a access) (*tenant.TokenInfo, error) {
	var err error
	if a.token, a.password, err = r.newCredentials(u.Name); err != nil {
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
	c := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(a.token), Issuer: tenant.IssuerOperator}
	if a.password != "" {
		c.PasswordHash = tenant.HashSecret(a.password)
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

// newCredentials returns a token, and a password for a user who has one.
func (r *TenantReconciler) newCredentials(user string) (token, password string, err error) {
	if token, err = tenant.NewTokenOf(tokenKind(user), r.config.DatabaseCell, r.config.Random); err == nil && hasPassword(user) {
		password, err = tenant.NewPassword(r.config.Random)
	}
	return token, password, err
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
