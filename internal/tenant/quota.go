package tenant

import (
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Quota limits the usage of a tenant. 0 allows nothing.
type Quota struct {
	Memories          int64
	Conversations     int64 // active ones
	Storage           int64 // bytes of UTF-8 text of memories, versions and messages
	Users             int64
	RequestsPerMinute int64
	PageTokens        int64 // maximum tokens of text per page of memories
	UserMemories      int64 // per user; NoLimit if not set
	UserConversations int64 // per user; NoLimit if not set
}

// NoLimit is a quota that is never reached.
const NoLimit = int64(1) << 53

// Usage is a tenant's usage, in the units of Quota.
type Usage struct {
	Memories      int64
	Conversations int64 // active ones
	Blocked       int64 // conversations over the quota
	Storage       int64
	Users         int64
}

// Resource describes a quota.
type Resource struct {
	Name    string // of the field in spec.quota of the Tenant, and in metrics
	Default int64  // of a Tenant that does not set it, unless the operator has another
	Maximum int64  // that a Tenant can set, unless the operator has another
	Bytes   bool   // its unit; otherwise it is a number
	Limit   func(*Quota) *int64
	Used    func(*Usage) int64  // nil if it is not counted
	Whole   func(*Quota) *int64 // of the quota of a single user: the tenant's, which it must not exceed; nil for others
}

// Resources are all quotas. Ceilings, the status, metrics and the dashboard derive from them. Tests compare them with
// the fields and the description of the Tenant, the flags, the chart and docs/tenant-spec.md.
var Resources = []Resource{
	{
		Name: "memories", Default: 10_000, Maximum: 1_000_000,
		Limit: func(q *Quota) *int64 { return &q.Memories }, Used: func(u *Usage) int64 { return u.Memories },
	},
	{
		Name: "conversations", Default: 500, Maximum: 100_000,
		Limit: func(q *Quota) *int64 { return &q.Conversations }, Used: func(u *Usage) int64 { return u.Conversations },
	},
	{
		Name: "storage", Default: 10 << 30, Maximum: 1 << 40, Bytes: true,
		Limit: func(q *Quota) *int64 { return &q.Storage }, Used: func(u *Usage) int64 { return u.Storage },
	},
	{
		Name: "users", Default: 50, Maximum: 10_000,
		Limit: func(q *Quota) *int64 { return &q.Users }, Used: func(u *Usage) int64 { return u.Users },
	},
	{
		Name: "requestsPerMinute", Default: 600, Maximum: 1_000_000,
		Limit: func(q *Quota) *int64 { return &q.RequestsPerMinute },
	},
	{
		Name: "pageTokens", Default: 25_000, Maximum: 1_000_000,
		Limit: func(q *Quota) *int64 { return &q.PageTokens },
	},
	{
		Name: "perUser.memories", Default: NoLimit, Maximum: NoLimit,
		Limit: func(q *Quota) *int64 { return &q.UserMemories }, Whole: func(q *Quota) *int64 { return &q.Memories },
	},
	{
		Name: "perUser.conversations", Default: NoLimit, Maximum: NoLimit,
		Limit: func(q *Quota) *int64 { return &q.UserConversations }, Whole: func(q *Quota) *int64 { return &q.Conversations },
	},
}

// DefaultQuota is the quota of a Tenant that sets none, unless the operator has another.
func DefaultQuota() Quota { return quotaOf(func(r Resource) int64 { return r.Default }) }

// MaximumQuota is the highest quota that a Tenant can set, unless the operator has another.
func MaximumQuota() Quota { return quotaOf(func(r Resource) int64 { return r.Maximum }) }

// Unlimited is the quota that limits nothing.
func Unlimited() Quota { return quotaOf(func(Resource) int64 { return NoLimit }) }

func quotaOf(limit func(Resource) int64) Quota {
	var q Quota
	for _, r := range Resources {
		*r.Limit(&q) = limit(r)
	}
	return q
}

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
