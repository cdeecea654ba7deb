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
	ListTokens        int64  `env:"LIST_TOKENS" default:"25000" help:"Default quota.listTokens of a Tenant."`
}

// Validate implements kong.Validatable. It reports every invalid flag.
func (f defaultQuotaFlags) Validate() error {
	_, err := f.quota()
	return err
}

func (f defaultQuotaFlags) quota() (tenant.Quota, error) {
	q := tenant.Quota{
		Memories: f.Memories, Conversations: f.Conversations, Users: f.Users,
		RequestsPerMinute: f.RequestsPerMinute, ListTokens: f.ListTokens,
		UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit,
	}
	var errs []error
	for _, flag := range []struct {
		name  string
		value int64
	}{
		{"memories", f.Memories}, {"conversations", f.Conversations}, {"users", f.Users},
		{"requests-per-minute", f.RequestsPerMinute}, {"list-tokens", f.ListTokens},
	} {
		if flag.value < 0 || flag.value > tenant.NoLimit {
			errs = append(errs, fmt.Errorf("--default-quota-%s must be from 0 to %d", flag.name, tenant.NoLimit))
		}
	}
	storage, err := resource.ParseQuantity(f.Storage)
	if err != nil || storage.Sign() < 0 || storage.CmpInt64(tenant.NoLimit) > 0 || storage.CmpInt64(storage.Value()) != 0 {
		errs = append(errs, errors.New("--default-quota-storage must be a whole number of bytes from 0 to 8Pi, for example 10Gi"))
	}
	q.Storage = storage.Value()
	return q, errors.Join(errs...)
}
