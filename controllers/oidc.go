package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// anyDomain assigns every domain that is not a public mail provider's.
const anyDomain = "*"

// oidc returns the identity provider of the spec with the domains that are assigned
// to the Tenant's namespace. Authors of Tenants cannot assign domains: a domain
// admits everyone who has an address in it, and nothing proves that it is theirs.
func (r *TenantReconciler) oidc(ctx context.Context, t *v1alpha1.Tenant) (tenant.OIDC, error) {
	spec := t.Spec.OIDC
	if spec == nil {
		return tenant.OIDC{}, nil
	}
	ns, err := r.namespace(ctx, t.Namespace)
	if err != nil {
		return tenant.OIDC{}, err
	}
	assigned := strings.FieldsFunc(strings.ToLower(ns.Annotations[v1alpha1.AnnotationOIDCDomains]), func(c rune) bool {
		return c == ',' || unicode.IsSpace(c)
	})
	out := tenant.OIDC{Issuer: spec.Issuer, Removed: spec.RemovedUsers}
	for _, domain := range spec.EmailDomains {
		if isAssigned(assigned, domain) {
			out.Domains = append(out.Domains, domain)
		} else {
			out.Unassigned = append(out.Unassigned, domain)
		}
	}
	return out, nil
}

func isAssigned(assigned []string, domain string) bool {
	return slices.Contains(assigned, domain) ||
		slices.Contains(assigned, anyDomain) && !tenant.IsPublicMailDomain(domain)
}

// namespace returns the metadata of a namespace from the API server. It belongs to
// the platform administrator, unlike the Tenants in it.
func (r *TenantReconciler) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil, fmt.Errorf("get namespace: %w", err)
	}
	return ns, nil
}

// setOIDCReady reports whether the domains of spec.oidc belong to the tenant.
func (p *pass) setOIDCReady(unassigned []string) {
	p.tenant.Status.OIDCUsers = p.stored.ExternalUsers
	switch oidc := p.tenant.Spec.OIDC; {
	case oidc == nil:
		p.removeCondition(v1alpha1.OIDCReady)
	case len(unassigned) > 0:
		p.setCondition(v1alpha1.OIDCReady, false, v1alpha1.ReasonDomainNotAssigned,
			"nobody can sign in with an address in %s: the platform administrator must assign it to namespace %s in annotation %s",
			listSome(unassigned), p.tenant.Namespace, v1alpha1.AnnotationOIDCDomains)
	case len(p.stored.DomainsTaken) > 0:
		p.setCondition(v1alpha1.OIDCReady, false, v1alpha1.ReasonDomainConflict,
			"another Tenant already uses %s with this issuer: remove the domain from one of the two Tenants; will be retried",
			listSome(p.stored.DomainsTaken))
	case len(oidc.EmailDomains) == 0:
		p.setCondition(v1alpha1.OIDCReady, false, v1alpha1.ReasonNoDomains,
			"no user can sign in: list the users' email domains in spec.oidc.emailDomains")
	default: // only the API servers know which issuers are trusted
		p.setCondition(v1alpha1.OIDCReady, true, v1alpha1.ReasonApplied,
			"the domains belong to this Tenant; users can sign in if the installation trusts the issuer (docs/sso.md)")
	}
}
