//go:build !nokubernetes

package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// defaultQuotaFlags are the quotas of a Tenant that does not set them. Their defaults are those of tenant.Resources.
type defaultQuotaFlags struct {
	Memories          int64  `env:"MEMORIES" default:"10000" help:"Default quota.memories of a Tenant."`
	Conversations     int64  `env:"CONVERSATIONS" default:"500" help:"Default quota.conversations of a Tenant."`
	Storage           string `env:"STORAGE" default:"10Gi" help:"Default quota.storage of a Tenant."`
	Users             int64  `env:"USERS" default:"50" help:"Default quota.users of a Tenant."`
	RequestsPerMinute int64  `env:"REQUESTS_PER_MINUTE" default:"600" help:"Default quota.requestsPerMinute of a Tenant."`
	PageTokens        int64  `env:"PAGE_TOKENS" default:"25000" help:"Default quota.pageTokens of a Tenant."`
}

// maxQuotaFlags limit the quotas that a Tenant can set. Their defaults are those of tenant.Resources.
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
	return quotaOf("default-quota", reflect.ValueOf(f))
}

func (f maxQuotaFlags) quota() (tenant.Quota, error) { return quotaOf("max-quota", reflect.ValueOf(f)) }

// quotaOf returns the quota in flags, whose fields are named like the resources.
func quotaOf(prefix string, flags reflect.Value) (tenant.Quota, error) {
	q := tenant.Unlimited()
	var errs []error
	for _, r := range tenant.Resources {
		if r.Whole != nil {
			continue
		}
		value := r.Limit(&q)
		if field := flags.FieldByName(strings.ToUpper(r.Name[:1]) + r.Name[1:]); r.Bytes {
			size, err := resource.ParseQuantity(field.String())
			if *value = size.Value(); err != nil || size.Sign() < 0 || size.CmpInt64(tenant.NoLimit) > 0 || size.CmpInt64(*value) != 0 {
				errs = append(errs, fmt.Errorf("--%s-%s must be a whole number of bytes from 0 to 8Pi, for example 10Gi", prefix, flagName(r)))
			}
		} else if *value = field.Int(); *value < 0 || *value > tenant.NoLimit {
			errs = append(errs, fmt.Errorf("--%s-%s must be from 0 to %d", prefix, flagName(r), tenant.NoLimit))
		}
	}
	return q, errors.Join(errs...)
}

var upperCase = regexp.MustCompile("[A-Z]")

// flagName returns the end of the names of the flags of a resource.
func flagName(r tenant.Resource) string {
	return strings.ToLower(upperCase.ReplaceAllString(r.Name, "-$0"))
}

// checkDefaults reports defaults that exceed the maximum.
func checkDefaults(defaults, maximum tenant.Quota) error {
	var errs []error
	for _, r := range tenant.Resources {
		if value, most := *r.Limit(&defaults), *r.Limit(&maximum); value > most {
			errs = append(errs, fmt.Errorf("--default-quota-%[1]s (%[2]d) must not exceed --max-quota-%[1]s (%[3]d)", flagName(r), value, most))
		}
	}
	return errors.Join(errs...)
}
