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
	RequestsPerMinute: tenant.NoLimit, ListTokens: tenant.NoLimit,
	UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit,
}

// limit lowers each value of the quota to the maximum and describes the changes.
func limit(quota *tenant.Quota, maximum tenant.Quota) (limited []string) {
	for _, q := range []struct {
		field   string
		value   *int64
		maximum int64
		format  func(int64) string
	}{
		{"memories", &quota.Memories, maximum.Memories, count},
		{"conversations", &quota.Conversations, maximum.Conversations, count},
		{"storage", &quota.Storage, maximum.Storage, size},
		{"users", &quota.Users, maximum.Users, count},
		{"requestsPerMinute", &quota.RequestsPerMinute, maximum.RequestsPerMinute, count},
		{"listTokens", &quota.ListTokens, maximum.ListTokens, count},
	} {
		if *q.value > q.maximum {
			limited = append(limited, fmt.Sprintf("%s %s instead of %s", q.field, q.format(q.maximum), q.format(*q.value)))
			*q.value = q.maximum
		}
	}
	return limited
}

func count(n int64) string { return fmt.Sprint(n) }

func size(bytes int64) string {
	q := quantity(bytes)
	return q.String()
}

// setQuotaLimited reports the quotas that the platform's maximum lowered. The Tenant
// is usable, so Ready does not depend on it.
func (p *pass) setQuotaLimited(limited []string) {
	if len(limited) == 0 {
		p.removeCondition(v1alpha1.QuotaLimited)
		return
	}
	p.setCondition(v1alpha1.QuotaLimited, true, v1alpha1.ReasonAboveMaximum,
		"spec.quota exceeds the platform's maximum, which applies: %s; lower spec.quota, or ask the platform administrator for a higher maximum",
		strings.Join(limited, ", "))
}
