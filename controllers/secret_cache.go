package controllers

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// stripValues is the transformation of Secrets before they are cached: the memory of
// the operator must not hold the credentials of all users. A Secret may pass it twice.
func stripValues(o any) (any, error) {
	if s, ok := o.(*corev1.Secret); ok && s.StringData == nil {
		s.ManagedFields = nil
		s.StringData, s.Data = fingerprints(s), nil
	}
	return o, nil
}

// withoutValues returns a copy of a Secret as it is in the cache, or the Secret
// itself if it is from there; nil for nil. The API server never sets StringData, so it
// marks Secrets without values.
func withoutValues(s *corev1.Secret) *corev1.Secret {
	if s == nil || s.StringData != nil {
		return s
	}
	out := s.DeepCopy()
	out.StringData, out.Data = fingerprints(s), nil
	return out
}

// fingerprints returns the values that are no credentials, as far as there are any, and
// the fingerprints of the credentials.
func fingerprints(s *corev1.Secret) map[string]string {
	out := map[string]string{
		v1alpha1.SecretToken:         fingerprint(string(s.Data[v1alpha1.SecretToken])),
		v1alpha1.SecretPassword:      fingerprint(string(s.Data[v1alpha1.SecretPassword])),
		v1alpha1.SecretSigningSecret: fingerprint(string(s.Data[v1alpha1.SecretSigningSecret])),
	}
	for _, key := range []string{v1alpha1.SecretURL, v1alpha1.SecretMCPURL, v1alpha1.SecretSignInName} {
		if value, ok := s.Data[key]; ok {
			out[key] = string(value)
		}
	}
	return out
}

// fingerprint returns the fingerprint of a credential, "" for an empty one.
func fingerprint(value string) string {
	if value == "" {
		return ""
	}
	return tenant.HashSecret(value).Fingerprint()
}
