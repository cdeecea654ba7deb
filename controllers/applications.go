package controllers

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The keys of an application are handled like the credentials of a user: the store has a
// holder of the keys, whose name is never that of a user. Only what differs is here.

func applicationSpec(a v1alpha1.TenantApplication) tenant.ApplicationSpec {
	spec := tenant.ApplicationSpec{Name: a.Name, Origins: a.AllowedOrigins, RequestsPerMinute: tenant.NoLimit}
	for _, s := range a.Scopes {
		spec.Scopes = append(spec.Scopes, string(s))
	}
	setIfPresent(&spec.RequestsPerMinute, a.RequestsPerMinute)
	return spec
}

// hasPassword reports whether the user of that name has a password: the holder of an
// application's keys has none.
func hasPassword(user string) bool {
	_, application := tenant.ApplicationOf(user)
	return !application
}

// tokenKind returns the kind of the user's tokens.
func tokenKind(user string) tenant.TokenKind {
	if hasPassword(user) {
		return tenant.APIToken
	}
	return tenant.KeyToken
}

// subject returns what events and errors call the user: "user alice" or "application web".
func subject(user string) string {
	if name, ok := tenant.ApplicationOf(user); ok {
		return "application " + name
	}
	return "user " + user
}

// setSubjectLabel labels a Secret with its user or application.
func setSubjectLabel(s *corev1.Secret, user string) {
	if name, ok := tenant.ApplicationOf(user); ok {
		s.Labels[v1alpha1.LabelApplication] = name
		return
	}
	s.Labels[v1alpha1.LabelUser] = user
}

// setApplications writes the state of the applications to the status.
func (p *pass) setApplications(holders []userAccess) {
	var statuses []v1alpha1.ApplicationStatus
	for _, h := range holders {
		name, _ := tenant.ApplicationOf(h.Name)
		s := p.statusOf(h)
		statuses = append(statuses, v1alpha1.ApplicationStatus{Name: name, Secret: s.Secret, Fingerprint: s.Fingerprint,
			TokenGeneration: s.TokenGeneration, Issued: s.Issued, Message: s.Message})
	}
	p.tenant.Status.Applications = statuses
}

// applicationStatus returns the application's status in the form of a user's, and false if
// the user holds no application's keys.
func (p *pass) applicationStatus(user string) (v1alpha1.UserStatus, bool) {
	name, ok := tenant.ApplicationOf(user)
	for _, a := range p.tenant.Status.Applications {
		if ok && a.Name == name {
			return v1alpha1.UserStatus{Name: user, Secret: a.Secret, Fingerprint: a.Fingerprint,
				TokenGeneration: a.TokenGeneration, Issued: a.Issued, Message: a.Message}, true
		}
	}
	return v1alpha1.UserStatus{Name: user}, ok
}
