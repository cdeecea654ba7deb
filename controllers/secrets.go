package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errNameTaken says that a Secret which is not this Tenant's has the name.
var errNameTaken = errors.New("the Secret's name is taken")

// secretName is the name of a user's Secret. User names have no dash, so that
// no two users of a namespace share one.
func secretName(t *v1alpha1.Tenant, user string) string {
	return t.Name + "-" + user + "-access"
}

// findSecret returns the user's Secret, nil when there is none, errNameTaken
// when another's has the name. The cache holds only Secrets with our label: what
// it does not have may be there all the same, and then only its metadata is
// read until it is known to be this Tenant's. That of a user who never had a
// token is not looked for: making it will tell.
func (r *TenantReconciler) findSecret(ctx context.Context, t *v1alpha1.Tenant, u tenant.User) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: secretName(t, u.Name)}
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, key, secret)
	if err == nil {
		if !metav1.IsControlledBy(secret, t) {
			return nil, errNameTaken
		}
		return secret, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Secret: %w", err)
	}
	if u.Token == nil {
		return nil, nil //nolint:nilnil // no Secret is an answer here
	}
	return r.readSecret(ctx, t, u.Name)
}

// readSecret is findSecret past the cache.
func (r *TenantReconciler) readSecret(ctx context.Context, t *v1alpha1.Tenant, user string) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: secretName(t, user)}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.live.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	} else if err != nil {
		return nil, fmt.Errorf("read Secret's metadata: %w", err)
	}
	if !metav1.IsControlledBy(found, t) {
		return nil, errNameTaken
	}
	secret := &corev1.Secret{}
	if err := r.live.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	} else if err != nil {
		return nil, fmt.Errorf("read Secret: %w", err)
	}
	return secret, nil
}

// access is what a Secret gives its user, and what it was issued for.
type access struct {
	generation      int64  // the spec's tokenGeneration
	rotation        string // see rotation; "" when none was asked for yet
	token, password string
}

// secretWith returns the Secret, or a new one, with this content.
func (r *TenantReconciler) secretWith(t *v1alpha1.Tenant, user string, secret *corev1.Secret, a access) (*corev1.Secret, error) {
	desired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: secretName(t, user)},
		Type:       corev1.SecretTypeOpaque,
	}
	if secret != nil {
		desired = secret.DeepCopy()
	}
	set(&desired.Labels, map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name, v1alpha1.LabelUser: user,
	})
	set(&desired.Annotations, map[string]string{
		v1alpha1.AnnotationTokenGeneration:     strconv.FormatInt(a.generation, 10),
		v1alpha1.AnnotationPasswordFingerprint: tenant.HashSecret(a.password).Fingerprint(),
	})
	if a.rotation != "" {
		desired.Annotations[v1alpha1.AnnotationRotated] = a.rotation
	}
	if delete(desired.Annotations, v1alpha1.AnnotationFingerprint); a.token != "" {
		desired.Annotations[v1alpha1.AnnotationFingerprint] = tenant.HashSecret(a.token).Fingerprint()
	}
	if desired.Data == nil {
		desired.Data = map[string][]byte{}
	}
	desired.Data[v1alpha1.SecretToken] = []byte(a.token)
	desired.Data[v1alpha1.SecretPassword] = []byte(a.password)
	desired.Data[v1alpha1.SecretURL] = []byte(r.config.URL)
	if err := controllerutil.SetControllerReference(t, desired, r.client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Secret: %w", err)
	}
	return desired, nil
}

func set(to *map[string]string, values map[string]string) {
	if *to == nil {
		*to = map[string]string{}
	}
	maps.Copy(*to, values)
}

// writeSecret creates or updates it; dry only asks whether it could. errHeld
// when the namespace is being deleted.
func (r *TenantReconciler) writeSecret(ctx context.Context, create bool, secret *corev1.Secret, dry bool) error {
	var err error
	target := secret
	if dry {
		target = secret.DeepCopy()
	}
	if create {
		var opts []client.CreateOption
		if dry {
			opts = append(opts, client.DryRunAll)
		}
		err = r.client.Create(ctx, target, opts...)
	} else {
		var opts []client.UpdateOption
		if dry {
			opts = append(opts, client.DryRunAll)
		}
		err = r.client.Update(ctx, target, opts...)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return errHeld
	}
	if err != nil {
		return fmt.Errorf("write Secret: %w", err)
	}
	return nil
}

// repairSecret puts right what is wrong about a Secret whose token is valid,
// and empties the token of one whose user has issued another.
func (r *TenantReconciler) repairSecret(ctx context.Context, t *v1alpha1.Tenant, u tenant.User, secret *corev1.Secret) error {
	token := string(secret.Data[v1alpha1.SecretToken])
	if u.Token.Issuer == tenant.IssuerUser {
		token = ""
	}
	desired, err := r.secretWith(t, u.Name, secret, access{
		generation: annotatedGeneration(secret), rotation: secret.Annotations[v1alpha1.AnnotationRotated],
		token: token, password: string(secret.Data[v1alpha1.SecretPassword]),
	})
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(secret, desired) {
		return nil
	}
	return r.writeSecret(ctx, false, desired, false)
}

// deleteSecrets deletes this Tenant's Secrets that match.
func (r *TenantReconciler) deleteSecrets(ctx context.Context, t *v1alpha1.Tenant, match func(*corev1.Secret) bool) error {
	var list corev1.SecretList
	if err := r.client.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{secretOwners: string(t.UID)},
		client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name}); err != nil {
		return fmt.Errorf("list Secrets: %w", err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		if !metav1.IsControlledBy(s, t) || !match(s) {
			continue
		}
		// With its uid, so that one made anew meanwhile is not meant.
		err := r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret: %w", err)
		}
	}
	return nil
}

// annotatedGeneration is the tokenGeneration the Secret was written for, 0 when
// it does not say.
func annotatedGeneration(s *corev1.Secret) int64 {
	n, err := strconv.ParseInt(s.Annotations[v1alpha1.AnnotationTokenGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// rotation names the value of the Tenant's annotation mnemo.dev/rotate, "" when
// it has none: the value itself, or a hash of one too long for a status.
func rotation(t *v1alpha1.Tenant) string {
	value := t.Annotations[v1alpha1.AnnotationRotate]
	if len(value) > 63 {
		return "sha256:" + tenant.HashSecret(value).Fingerprint()
	}
	return value
}

func passwordFingerprint(s *corev1.Secret) string {
	return tenant.HashSecret(string(s.Data[v1alpha1.SecretPassword])).Fingerprint()
}
