package tenant

import (
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Resources of QuotaExceeded.
const (
	ResourceMemories     = "memory"
	ResourceUserMemories = "per-user memory"
	ResourceStorage      = "storage"
	ResourceUsers        = "user"
	ResourceTokens       = "token"
	ResourceUploads      = "upload"
	ResourceUserUploads  = "per-user upload"
)

// QuotaExceeded is the error of a write that would exceed a quota. Its kind is
// fault.Forbidden.
type QuotaExceeded struct {
	Resource string
	Limit    int64
	Used     int64
}

// Error implements error.
func (e QuotaExceeded) Error() string {
	if e.Resource == ResourceStorage {
		return fmt.Sprintf("storage quota exceeded (limit %d bytes, used %d); %s", e.Limit, e.Used, quotaHint)
	}
	if e.Resource == ResourceUploads || e.Resource == ResourceUserUploads {
		return fmt.Sprintf("%s quota exceeded (limit %d bytes, used %d by unfinished imports); %s", e.Resource, e.Limit, e.Used, uploadHint)
	}
	if e.Resource == ResourceTokens {
		return fmt.Sprintf("token quota exceeded (limit %d); revoke a token that you no longer use", e.Limit)
	}
	if e.Resource == ResourceUsers {
		return fmt.Sprintf("user quota exceeded (limit %d); contact your administrator", e.Limit)
	}
	return fmt.Sprintf("%s quota exceeded (limit %d); %s", e.Resource, e.Limit, quotaHint)
}

const (
	quotaHint  = "delete some data or ask your administrator for a higher quota"
	uploadHint = "wait until other imports complete, import a smaller file or ask your administrator for a higher limit"
)

// Unwrap returns a fault of kind Forbidden with the same message, so that
// callers map it like any other fault.
func (e QuotaExceeded) Unwrap() error { return fault.New(fault.Forbidden, "%s", e.Error()) }
