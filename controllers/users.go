package controllers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// userStatus returns what the status says of the user, only the name without.
func (p *pass) userStatus(name string) v1alpha1.UserStatus {
	for _, s := range p.tenant.Status.Users {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.UserStatus{Name: name}
}

// keepUserStatuses notes those of a round that was broken off and keeps the rest.
func (p *pass) keepUserStatuses(fresh []v1alpha1.UserStatus) {
	for _, s := range p.tenant.Status.Users {
		if !slices.ContainsFunc(fresh, func(f v1alpha1.UserStatus) bool { return f.Name == s.Name }) {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b v1alpha1.UserStatus) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	p.tenant.Status.Users = fresh
}

// tokenGeneration returns the one the spec has for the user, at least 1.
func (p *pass) tokenGeneration(name string) int64 {
	for _, u := range p.tenant.Spec.Users {
		if u.Name == name {
			return max(u.TokenGeneration, 1)
		}
	}
	return 1
}

// lists reports whether the Secret is that of a listed user.
func (p *pass) lists(s *corev1.Secret) bool {
	return slices.ContainsFunc(p.tenant.Spec.Users, func(u v1alpha1.TenantUser) bool {
		return s.Name == secretName(p.tenant, u.Name)
	})
}
