package controllers

import (
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// noMaximum is the Config.Maximum that limits nothing.
var noMaximum = tenant.Quota{
	Memories: tenant.NoLimit, Conversations: tenant.NoLimit, Storage: tenant.NoLimit, Users: tenant.NoLimit,
	RequestsPerMinute: tenant.NoLimit, PageTokens: tenant.NoLimit,
	UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit,
}

// bound is the highest value of a quota.
type bound struct {
	field   string
	value   *int64
	maximum int64
	format  func(int64) string
}

// limit lowers each value of the quota to the platform's maximum and describes the changes.
func limit(quota *tenant.Quota, maximum tenant.Quota) []string {
	return lower([]bound{
		{"memories", &quota.Memories, maximum.Memories, count},
		{"conversations", &quota.Conversations, maximum.Conversations, count},
		{"storage", &quota.Storage, maximum.Storage, size},
		{"users", &quota.Users, maximum.Users, count},
		{"requestsPerMinute", &quota.RequestsPerMinute, maximum.RequestsPerMinute, count},
		{"pageTokens", &quota.PageTokens, maximum.PageTokens, count},
	})
}

// limitPerUser lowers the quota of a single user to the tenant's and describes the changes.
// The validation of the Tenant compares them only if both are set.
func limitPerUser(quota *tenant.Quota) []string {
	var set []bound
	for _, b := range []bound{
		{"perUser.memories", &quota.UserMemories, quota.Memories, count},
		{"perUser.conversations", &quota.UserConversations, quota.Conversations, count},
	} {
		if *b.value != tenant.NoLimit {
			set = append(set, b)
		}
	}
	return lower(set)
}

// lower lowers each value to its bound and describes the changes.
func lower(bounds []bound) (lowered []string) {
	for _, b := range bounds {
		if *b.value > b.maximum {
			lowered = append(lowered, fmt.Sprintf("%s %s instead of %s", b.field, b.format(b.maximum), b.format(*b.value)))
			*b.value = b.maximum
		}
	}
	return lowered
}

func count(n int64) string { return fmt.Sprint(n) }

func size(bytes int64) string {
	q := quantity(bytes)
	return q.String()
}

// setQuotaLimited reports the quotas that the platform's maximum lowered, and those of a
// single user that the tenant's quota lowered. The Tenant is usable, so Ready does not
// depend on it.
func (p *pass) setQuotaLimited(limited, perUser []string) {
	var messages []string
	if len(limited) > 0 {
		messages = append(messages, fmt.Sprintf("spec.quota exceeds the platform's maximum; the maximum is used instead: %s; "+
			"lower spec.quota, or ask the platform administrator for a higher maximum", strings.Join(limited, ", ")))
	}
	if len(perUser) > 0 {
		messages = append(messages, fmt.Sprintf("spec.quota.perUser exceeds the tenant's quota; the tenant's quota is used instead: %s; "+
			"lower spec.quota.perUser, or raise the tenant's quota", strings.Join(perUser, ", ")))
	}
	if len(messages) == 0 {
		p.removeCondition(v1alpha1.QuotaLimited)
		return
	}
	p.setCondition(v1alpha1.QuotaLimited, true, v1alpha1.ReasonAboveMaximum, "%s", strings.Join(messages, ". "))
}
