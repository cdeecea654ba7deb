package controllers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// maxUserMessage bounds the message of a user's status.
const maxUserMessage = 256

// userStatuses collects the results of ensureTokens.
type userStatuses struct {
	statuses   []v1alpha1.UserStatus
	conflicts  []string // names of the Secrets
	incomplete bool     // some users were not processed
}

func (s *userStatuses) addReady(u v1alpha1.UserStatus) { s.statuses = append(s.statuses, u) }

// addConflict adds a user whose Secret name is in use.
func (s *userStatuses) addConflict(old v1alpha1.UserStatus, secret string) {
	s.conflicts = append(s.conflicts, secret)
	old.Secret, old.Fingerprint = "", ""
	old.Message = truncate("Secret "+secret+" is not owned by this Tenant", maxUserMessage)
	s.statuses = append(s.statuses, old)
}

// addFailed adds a user as last observed, with the error. A conflict is retried at
// once and changes nothing: the user counts as not processed.
func (s *userStatuses) addFailed(old v1alpha1.UserStatus, err error) {
	if isConflict(err) {
		s.incomplete = true
		return
	}
	old.Message = truncate(publicMessage(err), maxUserMessage)
	s.statuses = append(s.statuses, old)
}

func truncate(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}

func isReadyUser(u v1alpha1.UserStatus) bool { return u.Secret != "" && u.Message == "" }

// setUsers writes the results to the status: all users, or for a Tenant with
// many users counts and failures only.
func (p *pass) setUsers(s *userStatuses) {
	total := len(p.stored.Users)
	statuses := s.statuses
	if s.incomplete {
		statuses = p.withUnprocessed(statuses)
	}
	slices.SortFunc(statuses, func(a, b v1alpha1.UserStatus) int { return cmp.Compare(a.Name, b.Name) })
	failing := slices.DeleteFunc(slices.Clone(statuses), isReadyUser)
	counts := &v1alpha1.UserCounts{Total: int64(total), Ready: int64(len(statuses) - len(failing))}
	if total > v1alpha1.MaxListedUsers {
		statuses = failing[:min(len(failing), v1alpha1.MaxListedUsers)]
		if old := p.tenant.Status.UserCounts; old != nil && s.incomplete {
			counts.Ready = min(old.Ready, counts.Total) // the last complete count
		}
	}
	p.tenant.Status.Users, p.tenant.Status.UserCounts = statuses, counts
}

// withUnprocessed adds the last observed status of the users that were not
// processed.
func (p *pass) withUnprocessed(statuses []v1alpha1.UserStatus) []v1alpha1.UserStatus {
	unprocessed := map[string]bool{}
	for _, u := range p.stored.Users {
		unprocessed[u.Name] = true
	}
	for _, s := range statuses {
		delete(unprocessed, s.Name)
	}
	for _, old := range p.tenant.Status.Users {
		if unprocessed[old.Name] {
			statuses = append(statuses, old)
		}
	}
	return statuses
}

// userStatus returns the user's status, with only the name if there is none.
func (p *pass) userStatus(name string) v1alpha1.UserStatus {
	for _, s := range p.tenant.Status.Users {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.UserStatus{Name: name}
}

// tokenGeneration returns the tokenGeneration of the user in the spec, at least 1.
func (p *pass) tokenGeneration(name string) int64 {
	for _, u := range p.tenant.Spec.Users {
		if u.Name == name {
			return max(u.TokenGeneration, 1)
		}
	}
	return 1
}

// secretNames returns the names of the Secrets of all listed users.
func (p *pass) secretNames() map[string]bool {
	names := make(map[string]bool, len(p.tenant.Spec.Users))
	for _, u := range p.tenant.Spec.Users {
		names[secretName(p.tenant, u.Name)] = true
	}
	return names
}
