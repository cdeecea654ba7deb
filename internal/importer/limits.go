package importer

import (
	"cmp"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MinUploads is the size of files that a tenant can always store, bytes. An export
// may be larger than the conversations in it.
const MinUploads = 16 << 20

// UploadLimits limit the bytes of uploaded files that are stored until they are
// imported. A zero field means its default.
type UploadLimits struct {
	User  int64 // of all files of a user
	Total int64 // of all files of the installation
}

// DefaultUploadLimits are two of the largest files per user, and 16 in total.
var DefaultUploadLimits = UploadLimits{User: 8 << 30, Total: 64 << 30}

func (l UploadLimits) withDefaults() UploadLimits {
	return UploadLimits{User: cmp.Or(l.User, DefaultUploadLimits.User), Total: cmp.Or(l.Total, DefaultUploadLimits.Total)}
}

// UploadUsage is the number of stored bytes of files, including a new chunk.
type UploadUsage struct {
	Chunk       int64
	User        int64
	Tenant      int64
	Total       int64
	StorageLeft int64 // of the tenant's storage quota, which does not include files
}

// Check returns an error if the new chunk exceeds a limit: tenant.QuotaExceeded for
// that of the user or the tenant, RateLimited for that of the installation. A
// tenant's files may use as much as remains of its storage quota, but at least
// MinUploads.
func (l UploadLimits) Check(u UploadUsage) error {
	tenantLimit := max(u.StorageLeft, MinUploads)
	switch {
	case u.User > l.User:
		return tenant.QuotaExceeded{Resource: tenant.ResourceUserUploads, Limit: l.User, Used: u.User - u.Chunk}
	case u.Tenant > tenantLimit:
		return tenant.QuotaExceeded{Resource: tenant.ResourceUploads, Limit: tenantLimit, Used: u.Tenant - u.Chunk}
	case u.Total > l.Total:
		return &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute, Message: "too many files are being imported; try again later"}
	}
	return nil
}
