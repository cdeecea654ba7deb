package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errSecretConflict means that a Secret of the name exists and is not owned by
// this Tenant.
var errSecretConflict = errors.New("the Secret is not owned by this Tenant")

// secretName returns the name of a user's or application's Secret. It is unique within
// the namespace because names of users and applications contain no dash.
func secretName(t *v1alpha1.Tenant, user string) string {
	if name, ok := tenant.ApplicationOf(user); ok {
		return t.Name + "-" + name + "-key"
	}
	return t.Name + "-" + user + "-access"
}

// checkConflict returns errSecretConflict if the cache has a Secret of the user's name
// that is not owned by the Tenant.
func (r *TenantReconciler) checkConflict(ctx context.Context, t *v1alpha1.Tenant, user string) error {
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: secretName(t, user)}, secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret: %w", err)
	}
	if err == nil && !metav1.IsControlledBy(secret, t) {
		return errSecretConflict
	}
	return nil
}

// readSecret returns a Secret from the API server, nil if there is none. It reads a Secret's data
// only after its metadata shows that the Tenant owns it.
func (r *TenantReconciler) readSecret(ctx context.Context, t *v1alpha1.Tenant, name string) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: name}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.live.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	} else if err != nil {
		return nil, fmt.Errorf("read Secret's metadata: %w", err)
	}
	if !metav1.IsControlledBy(found, t) {
		return nil, errSecretConflict
	}
	secret := &corev1.Secret{}
	if err := r.live.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	} else if err != nil {
		return nil, fmt.Errorf("read Secret: %w", err)
	}
	return secret, nil
}

// access is the content of a Secret and what it was issued for.
type access struct {
	generation      int64  // the spec's tokenGeneration
	rotation        string // see rotation; "" if none was requested
	token, password string // no password for an application
}

// secretWith returns a copy of the Secret, or a new one if nil, with the content.
func (r *TenantReconciler) secretWith(t *v1alpha1.Tenant, user string, secret *corev1.Secret, a access) (*corev1.Secret, error) {
	desired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: secretName(t, user)},
		Type:       corev1.SecretTypeOpaque,
	}
	if secret != nil {
		desired = secret.DeepCopy()
	}
	applyMetadata(t, user, desired, a.generation, a.rotation, fingerprint(a.token), fingerprint(a.password))
	if desired.Data == nil {
		desired.Data = map[string][]byte{}
	}
	desired.Data[v1alpha1.SecretToken] = []byte(a.token)
	if hasPassword(user) {
		desired.Data[v1alpha1.SecretPassword] = []byte(a.password)
	}
	for key, value := range r.addresses(t, user) {
		desired.Data[key] = []byte(value)
	}
	if err := controllerutil.SetControllerReference(t, desired, r.client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Secret: %w", err)
	}
	return desired, nil
}

// addresses returns the values of a Secret that are not credentials.
func (r *TenantReconciler) addresses(t *v1alpha1.Tenant, user string) map[string]string {
	values := map[string]string{v1alpha1.SecretURL: r.config.URL, v1alpha1.SecretMCPURL: strings.TrimSuffix(r.config.URL, "/") + "/mcp"}
	if hasPassword(user) {
		values[v1alpha1.SecretSignInName] = tenant.SignInName{Tenant: t.Name, User: user}.String()
	}
	return values
}

// applyMetadata sets the labels and annotations of a user's Secret.
func applyMetadata(t *v1alpha1.Tenant, user string, s *corev1.Secret, generation int64, rotation, token, password string) {
	setAll(&s.Labels, map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name,
	})
	setSubjectLabel(s, user)
	setAll(&s.Annotations, map[string]string{v1alpha1.AnnotationTokenGeneration: strconv.FormatInt(generation, 10)})
	if rotation != "" {
		s.Annotations[v1alpha1.AnnotationRotated] = rotation
	}
	setFingerprint(s, v1alpha1.AnnotationFingerprint, token)
	setFingerprint(s, v1alpha1.AnnotationPasswordFingerprint, password)
}

// setFingerprint sets an annotation, or removes it if the Secret holds no such credential.
func setFingerprint(s *corev1.Secret, annotation, fingerprint string) {
	if delete(s.Annotations, annotation); fingerprint != "" {
		s.Annotations[annotation] = fingerprint
	}
}

func setAll(to *map[string]string, values map[string]string) {
	if *to == nil {
		*to = map[string]string{}
	}
	maps.Copy(*to, values)
}

// writeSecret creates or updates the Secret, or with dryRun only validates the
// write. It returns errStalled if the namespace is being deleted.
func (r *TenantReconciler) writeSecret(ctx context.Context, create bool, secret *corev1.Secret, dryRun bool) error {
	var err error
	if secret.StringData != nil {
		return errors.New("a Secret without values must not be written")
	}
	target := secret
	if dryRun {
		target = secret.DeepCopy()
	}
	if create {
		var opts []client.CreateOption
		if dryRun {
			opts = append(opts, client.DryRunAll)
		}
		err = r.client.Create(ctx, target, opts...)
	} else {
		var opts []client.UpdateOption
		if dryRun {
			opts = append(opts, client.DryRunAll)
		}
		err = r.client.Update(ctx, target, opts...)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return errStalled
	}
	if err != nil {
		return fmt.Errorf("write Secret: %w", err)
	}
	return nil
}

// isCurrent reports whether repairSecret would leave a Secret as it is. The Secret is
// one without values whose token is valid.
func (r *TenantReconciler) isCurrent(t *v1alpha1.Tenant, u tenant.User, secret *corev1.Secret) bool {
	desired := secret.DeepCopy()
	token, password := held(u, secret.StringData[v1alpha1.SecretToken], secret.StringData[v1alpha1.SecretPassword])
	desired.StringData[v1alpha1.SecretToken], desired.StringData[v1alpha1.SecretPassword] = token, password
	maps.Copy(desired.StringData, r.addresses(t, u.Name))
	applyMetadata(t, u.Name, desired, annotatedGeneration(secret), secret.Annotations[v1alpha1.AnnotationRotated], token, password)
	return equality.Semantic.DeepEqual(secret, desired)
}

// held returns the credentials, or their fingerprints, that the Secret may hold: not
// those that the user has replaced.
func held(u tenant.User, token, password string) (heldToken, heldPassword string) {
	if u.Token.Issuer == tenant.IssuerUser {
		token = ""
	}
	if u.PasswordReplaced {
		password = ""
	}
	return token, password
}

// repairSecret restores labels, annotations and data of a Secret whose token is
// valid, and clears the credentials that the user replaced.
func (r *TenantReconciler) repairSecret(ctx context.Context, t *v1alpha1.Tenant, u tenant.User, secret *corev1.Secret) error {
	token, password := held(u, string(secret.Data[v1alpha1.SecretToken]), string(secret.Data[v1alpha1.SecretPassword]))
	desired, err := r.secretWith(t, u.Name, secret, access{
		generation: annotatedGeneration(secret), rotation: secret.Annotations[v1alpha1.AnnotationRotated],
		token: token, password: password,
	})
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(secret, desired) {
		return nil
	}
	return r.writeSecret(ctx, false, desired, false)
}

// listSecrets returns the Secrets that the Tenant owns, from the cache.
func (r *TenantReconciler) listSecrets(ctx context.Context, t *v1alpha1.Tenant) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.client.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{secretOwners: string(t.UID)},
		client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name}); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return !metav1.IsControlledBy(&s, t) }), nil
}

// secretsByName returns the Secrets that the Tenant owns, from the cache and without values.
func (r *TenantReconciler) secretsByName(ctx context.Context, t *v1alpha1.Tenant) (map[string]*corev1.Secret, error) {
	list, err := r.listSecrets(ctx, t)
	secrets := make(map[string]*corev1.Secret, len(list))
	for i := range list {
		secrets[list[i].Name] = withoutValues(&list[i])
	}
	return secrets, err
}

// deleteSecrets deletes the Tenant's Secrets that match.
func (r *TenantReconciler) deleteSecrets(ctx context.Context, t *v1alpha1.Tenant, match func(*corev1.Secret) bool) error {
	secrets, err := r.listSecrets(ctx, t)
	if err != nil {
		return err
	}
	for i := range secrets {
		s := &secrets[i]
		if !match(s) {
			continue
		}
		// The uid protects a Secret that was recreated in the meantime.
		err := r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret: %w", err)
		}
	}
	return nil
}

// annotatedGeneration returns the tokenGeneration that the Secret was written
// for, 0 without a valid annotation.
func annotatedGeneration(s *corev1.Secret) int64 {
	return generationIn(s, v1alpha1.AnnotationTokenGeneration)
}

func generationIn(s *corev1.Secret, annotation string) int64 {
	n, err := strconv.ParseInt(s.Annotations[annotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// rotation returns the value of annotation mnemo.dev/rotate, hashed if it is too
// long for the status; "" without the annotation.
func rotation(t *v1alpha1.Tenant) string {
	value := t.Annotations[v1alpha1.AnnotationRotate]
	if len(value) > 63 {
		return "sha256:" + tenant.HashSecret(value).Fingerprint()
	}
	return value
}
