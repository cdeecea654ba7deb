package controllers

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxUserMessage bounds the message of a user's status.
const maxUserMessage = 256

// priority orders the users that are due in a pass.
type priority int

const (
	withdraw   priority = iota // an older or leaked credential is still valid
	rotate                     // as above, for all users
	firstIssue                 // nobody has a credential yet
	repair                     // the credentials are valid
	upToDate
)

// userAccess is a user with the state of the credentials.
type userAccess struct {
	tenant.User
	secret   *corev1.Secret // without values; nil if the cache has none
	desired  access
	priority priority
	status   v1alpha1.UserStatus // after a change
	err      error               // why the user could not be changed
}

// isDue reports whether the user is to be changed in this round.
func (u userAccess) isDue() bool { return u.err == nil && u.priority != upToDate }

// hasAccess reports whether the user has a Secret and a valid token.
func (u userAccess) hasAccess() bool {
	return u.secret != nil && u.Token != nil && u.Token.Fingerprint != ""
}

func (r *TenantReconciler) priority(t *v1alpha1.Tenant, u userAccess) priority {
	reason := issueReason(u.User, u.secret, u.desired)
	switch {
	case reason == "" && u.Unrevoked:
		return withdraw
	case reason == "" && r.isCurrent(t, u.User, u.secret):
		return upToDate
	case reason == "":
		return repair
	case u.Token == nil:
		return firstIssue
	case strings.HasPrefix(reason, v1alpha1.AnnotationRotate):
		return rotate
	}
	return withdraw
}

// rounds holds the users of each Tenant that failed since the Tenant's users were
// last all processed. They are retried in the next round, so that they do not keep
// the others from being processed.
type rounds struct {
	mu     sync.Mutex
	failed map[types.UID]map[string]error
}

func (r *rounds) fail(t types.UID, user string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed[t] == nil {
		r.failed[t] = map[string]error{}
	}
	r.failed[t][user] = err
}

// failure returns the error of the user in this round, nil if there is none.
func (r *rounds) failure(t types.UID, user string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[t][user]
}

// end begins a new round.
func (r *rounds) end(t types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, t)
}

func readyStatus(t *v1alpha1.Tenant, user string, generation int64, token *tenant.TokenInfo) v1alpha1.UserStatus {
	managedBy := v1alpha1.ManagedByOperator
	if token.Issuer == tenant.IssuerUser {
		managedBy = v1alpha1.ManagedByUser
	}
	return v1alpha1.UserStatus{
		Name: user, Secret: secretName(t, user), Fingerprint: token.Fingerprint,
		TokenGeneration: generation, Issued: token.Generation, ManagedBy: managedBy,
	}
}

// statusOf returns the status of a user after the pass.
func (p *pass) statusOf(u userAccess) v1alpha1.UserStatus {
	switch old := p.userStatus(u.Name); {
	case errors.Is(u.err, errSecretConflict):
		old.Secret, old.Fingerprint = "", ""
		old.Message = truncate("Secret " + secretName(p.tenant, u.Name) + " is not owned by this Tenant")
		return old
	case u.err != nil && !isConflict(u.err): // a conflict is retried at once and changes nothing
		old.Message = truncate(publicMessage(u.err))
		return old
	case u.status.Name != "":
		return u.status
	case u.priority != upToDate && (old.Message != "" || !u.hasAccess()):
		return old
	default:
		return readyStatus(p.tenant, u.Name, min(annotatedGeneration(u.secret), u.desired.generation), u.Token)
	}
}

// truncate cuts a message of the status.
func truncate(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxUserMessage)], "")
}

func isReadyUser(u v1alpha1.UserStatus) bool { return u.Secret != "" && u.Message == "" }

// setUsers writes the results to the status: all users, or for a Tenant with
// many users counts and failures only.
func (p *pass) setUsers(users []userAccess) {
	statuses := make([]v1alpha1.UserStatus, 0, len(users))
	for _, u := range users {
		statuses = append(statuses, p.statusOf(u))
	}
	slices.SortFunc(statuses, func(a, b v1alpha1.UserStatus) int { return cmp.Compare(a.Name, b.Name) })
	failing := slices.DeleteFunc(slices.Clone(statuses), isReadyUser)
	p.tenant.Status.UserCounts = &v1alpha1.UserCounts{Total: int64(len(users)), Ready: int64(len(users) - len(failing))}
	if len(users) > v1alpha1.MaxListedUsers {
		// Users who only wait for a further pass are not failures.
		failing = slices.DeleteFunc(failing, func(s v1alpha1.UserStatus) bool { return s.Message == "" })
		statuses = failing[:min(len(failing), v1alpha1.MaxListedUsers)]
	}
	p.tenant.Status.Users = statuses
}

// userStatus returns the user's status, with only the name if there is none.
func (p *pass) userStatus(name string) v1alpha1.UserStatus {
	if s, ok := p.applicationStatus(name); ok {
		return s
	}
	for _, s := range p.tenant.Status.Users {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.UserStatus{Name: name}
}

// tokenGeneration returns the desired generation of the credentials of the user or application: that of the spec, but
// never less than the current one.
func (p *pass) tokenGeneration(name string) int64 {
	return max(p.specifiedGeneration(name), p.userStatus(name).TokenGeneration)
}

// specifiedGeneration returns the tokenGeneration of the user or application in the spec, at
// least 1.
func (p *pass) specifiedGeneration(name string) int64 {
	for _, a := range p.tenant.Spec.Applications {
		if tenant.KeyHolder(a.Name) == name {
			return max(a.TokenGeneration, 1)
		}
	}
	for _, u := range p.tenant.Spec.Users {
		if u.Name == name {
			return max(u.TokenGeneration, 1)
		}
	}
	return 1
}

// secretNames returns the names of the Secrets of all listed users, applications and webhooks.
func (p *pass) secretNames() map[string]bool {
	names := make(map[string]bool, len(p.tenant.Spec.Users))
	for _, u := range p.tenant.Spec.Users {
		names[secretName(p.tenant, u.Name)] = true
	}
	for _, a := range p.tenant.Spec.Applications {
		names[secretName(p.tenant, tenant.KeyHolder(a.Name))] = true
	}
	for _, w := range p.tenant.Spec.Webhooks {
		names[webhookSecretName(p.tenant, w.Name)] = true
	}
	return names
}
