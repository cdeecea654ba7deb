package controllers

import (
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// limit lowers each value of the quota to the platform's maximum and describes the changes.
func limit(quota *tenant.Quota, maximum tenant.Quota) (lowered []string) {
	for _, r := range tenant.Resources {
		lowered = lower(lowered, r, r.Limit(quota), *r.Limit(&maximum))
	}
	return lowered
}

// limitPerUser lowers the quota of a single user to the tenant's and describes the changes.
// The validation of the Tenant compares them only if both are set.
func limitPerUser(quota *tenant.Quota) (lowered []string) {
	for _, r := range tenant.Resources {
		if r.Whole != nil && *r.Limit(quota) != tenant.NoLimit {
			lowered = lower(lowered, r, r.Limit(quota), *r.Whole(quota))
		}
	}
	return lowered
}

// lower lowers a value to its maximum and appends a description of the change.
func lower(lowered []string, r tenant.Resource, value *int64, maximum int64) []string {
	if *value <= maximum {
		return lowered
	}
	lowered = append(lowered, fmt.Sprintf("%s %s instead of %s", r.Name, amount(r, maximum), amount(r, *value)))
	*value = maximum
	return lowered
}

// amount returns a value of a quota as in spec.quota.
func amount(r tenant.Resource, n int64) string {
	if r.Bytes {
		q := quantity(n)
		return q.String()
	}
	return fmt.Sprint(n)
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
