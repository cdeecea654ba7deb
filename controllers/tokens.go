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

// ensureTokens gives each listed user a Secret with a token that is valid, and
// takes the Secrets of the others away.
func (r *TenantReconciler) ensureTokens(ctx context.Context, p *pass) error {
	var taken []string
	statuses := make([]v1alpha1.UserStatus, 0, len(p.stored.Users))
	// First: whoever is not listed any more has a dead token in the Secret.
	failed := r.deleteSecrets(ctx, p.tenant, func(s *corev1.Secret) bool { return !p.lists(s) })
	for _, u := range p.stored.Users {
		was := p.userStatus(u.Name)
		now, err := r.ensureToken(ctx, p, u, was)
		switch {
		case errors.Is(err, errNameTaken):
			taken = append(taken, secretName(p.tenant, u.Name))
			was.Secret, was.Fingerprint = "", ""
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("user %s: %w", u.Name, err))
		default:
			was = now
		}
		statuses = append(statuses, was)
		if fault.Is(err, fault.Unavailable) || errors.Is(err, errHeld) {
			break // it would be the same for the next one
		}
	}
	if failed == nil {
		p.tenant.Status.Users = statuses
	} else {
		p.keepUserStatuses(statuses)
	}
	if failed == nil && len(taken) == 0 {
		p.noteRotation()
	}
	return p.concludeTokens(taken, failed)
}

// noteRotation records that every token is of the rotation asked for last.
func (p *pass) noteRotation() {
	now := rotation(p.tenant)
	if now == "" || now == p.tenant.Status.Rotated {
		return
	}
	p.tenant.Status.Rotated = now
	p.note("Rotated", "every user's token and password were replaced for mnemo.dev/rotate=%s", now)
}

// concludeTokens sets TokensReady of what came out for the users.
func (p *pass) concludeTokens(taken []string, failed error) error {
	switch {
	case errors.Is(failed, errHeld):
		p.set(v1alpha1.TokensReady, false, v1alpha1.ReasonWaiting, "the namespace is being deleted: no Secret is made in it")
		return errHeld
	case retried(failed):
		return failed // the condition stays what it was
	case failed != nil:
		p.fail(v1alpha1.TokensReady, failed)
		return failed
	case len(taken) > 0:
		slices.Sort(taken)
		p.set(v1alpha1.TokensReady, false, v1alpha1.ReasonSecretNameTaken,
			"not this Tenant's and therefore left alone: Secret %s; delete or rename it", strings.Join(taken, ", "))
		return errHeld
	}
	p.set(v1alpha1.TokensReady, true, v1alpha1.ReasonIssued, "each user's Secret holds what was issued last")
	return nil
}

// ensureToken makes one user's Secret right. Every crash between its three
// writes leaves a state that the next call mends: a hash without a Secret is
// superseded by a new one, and a Secret whose older hashes were not revoked is
// known by a status that does not have its number yet.
func (r *TenantReconciler) ensureToken(ctx context.Context, p *pass, u tenant.User, was v1alpha1.UserStatus) (v1alpha1.UserStatus, error) {
	wanted := access{generation: p.tokenGeneration(u.Name), rotation: rotation(p.tenant)}
	secret, err := r.findSecret(ctx, p.tenant, u)
	if err != nil {
		return was, err
	}
	if why := stale(secret, u.Token, wanted); why != "" && secret != nil {
		// The cache may be behind: never supersede a token for that.
		if secret, err = r.readSecret(ctx, p.tenant, u.Name); err != nil {
			return was, err
		}
	}
	token := u.Token
	if why := stale(secret, token, wanted); why != "" {
		token, err = r.issue(ctx, p, u, secret, wanted)
		if secret == nil && apierrors.IsAlreadyExists(err) {
			if _, taken := r.readSecret(ctx, p.tenant, u.Name); taken != nil {
				err = taken
			}
		}
		if err != nil {
			return was, fmt.Errorf("issue token: %w", err)
		}
		// The first ones, and those of a rotation of all, would be as many events as users.
		if u.Token != nil && !strings.HasPrefix(why, v1alpha1.AnnotationRotate) {
			p.note("TokenIssued", "user %s has a new token and password: %s", u.Name, why)
		}
	} else {
		if err := r.repairSecret(ctx, p.tenant, u, secret); err != nil {
			return was, err
		}
		if err := r.finishRotation(ctx, p, u, was); err != nil {
			return was, err
		}
	}
	managedBy := v1alpha1.ManagedByOperator
	if token.Issuer == tenant.IssuerUser {
		managedBy = v1alpha1.ManagedByUser
	}
	return v1alpha1.UserStatus{
		Name: u.Name, Secret: secretName(p.tenant, u.Name), Fingerprint: token.Fingerprint,
		TokenGeneration: wanted.generation, Issued: token.Generation, ManagedBy: managedBy,
	}, nil
}

// stale says why the user needs a new token, "" when not.
func stale(secret *corev1.Secret, token *tenant.TokenInfo, wanted access) string {
	switch {
	case secret == nil && token == nil:
		return "the first"
	case secret == nil:
		return "there was no Secret"
	case token == nil || token.Fingerprint == "":
		return "the one before is revoked"
	case annotatedGeneration(secret) < wanted.generation:
		return "tokenGeneration was raised to " + strconv.FormatInt(wanted.generation, 10)
	case wanted.rotation != "" && secret.Annotations[v1alpha1.AnnotationRotated] != wanted.rotation:
		return v1alpha1.AnnotationRotate + "=" + wanted.rotation
	case token.Issuer == tenant.IssuerUser:
		return "" // the user holds it, the Secret cannot
	case tenant.HashSecret(string(secret.Data[v1alpha1.SecretToken])).Fingerprint() != token.Fingerprint:
		return "the Secret did not hold the newest"
	case passwordFingerprint(secret) != secret.Annotations[v1alpha1.AnnotationPasswordFingerprint]:
		return "the Secret did not hold the password issued with the token"
	}
	return ""
}

// issue replaces token and password: the new hash is installed, the Secret
// written, the older hashes revoked. Without a Secret nobody who was given
// access through it is to have any longer, so the old go before the write.
func (r *TenantReconciler) issue(ctx context.Context, p *pass, u tenant.User, secret *corev1.Secret, wanted access) (*tenant.TokenInfo, error) {
	var err error
	if wanted.token, err = tenant.NewToken(r.config.Random); err != nil {
		return nil, err
	}
	if wanted.password, err = tenant.NewPassword(r.config.Random); err != nil {
		return nil, err
	}
	desired, err := r.secretWith(p.tenant, u.Name, secret, wanted)
	if err != nil {
		return nil, err
	}
	// A write that is refused (a quota, a namespace that ends) is to be known
	// before a hash is installed, or each retry would leave one. A thousand new
	// users are not worth asking everything twice: a first hash is taken back.
	if u.Token != nil {
		if err := r.writeSecret(ctx, secret == nil, desired, true); err != nil {
			return nil, err
		}
	}
	c := tenant.Credential{
		Generation: 1, TokenHash: tenant.HashSecret(wanted.token), PasswordHash: tenant.HashSecret(wanted.password),
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

// publish writes the Secret. Where a user's first is refused, the token in it
// ends, which nobody was given.
func (r *TenantReconciler) publish(ctx context.Context, p *pass, u tenant.User, create bool, secret *corev1.Secret, generation int64) error {
	err := r.writeSecret(ctx, create, secret, false)
	if u.Token == nil && refused(err) {
		return errors.Join(err, r.revokeOlder(ctx, p, u.Name, generation+1, 0))
	}
	return err
}

// refused reports whether the API server answered that it will not write.
func refused(err error) bool {
	return errors.Is(err, errHeld) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}

// finishRotation revokes what an earlier pass could not. One that was finished
// and whose status was not written is finished again, which changes nothing.
func (r *TenantReconciler) finishRotation(ctx context.Context, p *pass, u tenant.User, was v1alpha1.UserStatus) error {
	if was.Issued == u.Token.Generation {
		return nil
	}
	overlap := p.tenant.Spec.TokenOverlap.Duration
	if u.Token.Issuer == tenant.IssuerUser {
		overlap = 0 // regenerating in the dashboard ends the old one everywhere
	}
	return r.revokeOlder(ctx, p, u.Name, u.Token.Generation, overlap)
}

func (r *TenantReconciler) revokeOlder(ctx context.Context, p *pass, user string, generation int64, overlap time.Duration) error {
	if err := r.tokens.RevokeOlder(ctx, p.stored.ID, user, generation, overlap); err != nil {
		return fmt.Errorf("revoke older tokens: %w", err)
	}
	return nil
}
