//go:build !nokubernetes

package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// defaultQuotaFlags are the quotas of a Tenant that does not set them.
type defaultQuotaFlags struct {
	Memories          int64  `env:"MEMORIES" default:"10000" help:"Default quota.memories of a Tenant."`
	Conversations     int64  `env:"CONVERSATIONS" default:"500" help:"Default quota.conversations of a Tenant."`
	Storage           string `env:"STORAGE" default:"10Gi" help:"Default quota.storage of a Tenant."`
	Users             int64  `env:"USERS" default:"50" help:"Default quota.users of a Tenant."`
	RequestsPerMinute int64  `env:"REQUESTS_PER_MINUTE" default:"600" help:"Default quota.requestsPerMinute of a Tenant."`
	PageTokens        int64  `env:"PAGE_TOKENS" default:"25000" help:"Default quota.pageTokens of a Tenant."`
}

// maxQuotaFlags limit the quotas that a Tenant can set.
type maxQuotaFlags struct {
	Memories          int64  `env:"MEMORIES" default:"1000000" help:"Maximum quota.memories of a Tenant."`
	Conversations     int64  `env:"CONVERSATIONS" default:"100000" help:"Maximum quota.conversations of a Tenant."`
	Storage           string `env:"STORAGE" default:"1Ti" help:"Maximum quota.storage of a Tenant."`
	Users             int64  `env:"USERS" default:"10000" help:"Maximum quota.users of a Tenant."`
	RequestsPerMinute int64  `env:"REQUESTS_PER_MINUTE" default:"1000000" help:"Maximum quota.requestsPerMinute of a Tenant."`
	PageTokens        int64  `env:"PAGE_TOKENS" default:"1000000" help:"Maximum quota.pageTokens of a Tenant."`
}

// Validate implements kong.Validatable. It reports every invalid flag.
func (f defaultQuotaFlags) Validate() error {
	_, err := f.quota()
	return err
}

// Validate implements kong.Validatable. It reports every invalid flag.
func (f maxQuotaFlags) Validate() error {
	_, err := f.quota()
	return err
}

func (f defaultQuotaFlags) quota() (tenant.Quota, error) {
	return quotaValues(f).quota("default-quota")
}

func (f maxQuotaFlags) quota() (tenant.Quota, error) { return quotaValues(f).quota("max-quota") }

// quotaValues are the values of defaultQuotaFlags or maxQuotaFlags.
type quotaValues struct {
	Memories          int64
	Conversations     int64
	Storage           string
	Users             int64
	RequestsPerMinute int64
	PageTokens        int64
}

func (f quotaValues) quota(prefix string) (tenant.Quota, error) {
	q := tenant.Quota{
		Memories: f.Memories, Conversations: f.Conversations, Users: f.Users,
		RequestsPerMinute: f.RequestsPerMinute, PageTokens: f.PageTokens,
		UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit,
	}
	var errs []error
	for _, flag := range []struct {
		name  string
		value int64
	}{
		{"memories", f.Memories}, {"conversations", f.Conversations}, {"users", f.Users},
		{"requests-per-minute", f.RequestsPerMinute}, {"page-tokens", f.PageTokens},
	} {
		if flag.value < 0 || flag.value > tenant.NoLimit {
			errs = append(errs, fmt.Errorf("--%s-%s must be from 0 to %d", prefix, flag.name, tenant.NoLimit))
		}
	}
	storage, err := resource.ParseQuantity(f.Storage)
	if err != nil || storage.Sign() < 0 || storage.CmpInt64(tenant.NoLimit) > 0 || storage.CmpInt64(storage.Value()) != 0 {
		errs = append(errs, fmt.Errorf("--%s-storage must be a whole number of bytes from 0 to 8Pi, for example 10Gi", prefix))
	}
	q.Storage = storage.Value()
	return q, errors.Join(errs...)
}

// checkDefaults reports defaults that exceed the maximum.
func checkDefaults(defaults, maximum tenant.Quota) error {
	var errs []error
	for _, flag := range []struct {
		name           string
		value, maximum int64
	}{
		{"memories", defaults.Memories, maximum.Memories}, {"conversations", defaults.Conversations, maximum.Conversations},
		{"storage", defaults.Storage, maximum.Storage}, {"users", defaults.Users, maximum.Users},
		{"requests-per-minute", defaults.RequestsPerMinute, maximum.RequestsPerMinute}, {"page-tokens", defaults.PageTokens, maximum.PageTokens},
	} {
		if flag.value > flag.maximum {
			errs = append(errs, fmt.Errorf("--default-quota-%[1]s (%[2]d) must not exceed --max-quota-%[1]s (%[3]d)", flag.name, flag.value, flag.maximum))
		}
	}
	return errors.Join(errs...)
}
