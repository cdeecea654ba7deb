package tenant

import "time"

// PlatformAdministrator is a user of an identity provider who sees the platform overview.
// It has no Scope, and so no access to the data of tenants.
type PlatformAdministrator struct {
	Issuer, Subject, Email string
}

// PlatformSignIn is a sign-in of a platform administrator.
type PlatformSignIn struct {
	PlatformAdministrator
	Address  string // of the client; attempts are counted per address
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
}

// OverviewGroup is a group of tenants in the platform overview.
type OverviewGroup string

// The groups of tenants. The zero value contains all.
const (
	OnlyNearQuota OverviewGroup = "near-quota"
	OnlyUnhealthy OverviewGroup = "unhealthy"
	OnlyRetained  OverviewGroup = "retained" // their Tenant resource is deleted, their data is not
)

// OverviewOrder is an order of tenants in the platform overview.
type OverviewOrder string

// The orders of tenants. The zero value is by relative usage, highest first.
const (
	ByName     OverviewOrder = "name"
	ByStorage  OverviewOrder = "storage"
	ByIndexLag OverviewOrder = "index-lag"
)

// OverviewFilter selects a page of the tenants in the platform overview.
type OverviewFilter struct {
	Group  OverviewGroup
	Name   string // part of namespace/name or of the display name
	Order  OverviewOrder
	Limit  int
	Offset int
}

// Overview is the state of all tenants in numbers, and a page of them.
type Overview struct {
	All, NearQuota, Unhealthy, Retained int64 // numbers of tenants
	Changes                             int64 // not indexed yet
	IndexLag                            time.Duration
	Tenants                             []OverviewTenant
	HasMore                             bool // there are further pages
}

// OverviewTenant is a tenant in the platform overview: names and counts only.
type OverviewTenant struct {
	ID                           ID
	Namespace, Name, DisplayName string
	Suspended, Retained          bool
	NearQuota, Unhealthy         bool
	Usage                        Usage
	Hard                         Quota         // memories, conversations, storage and users
	Changes                      int64         // not indexed yet
	IndexLag                     time.Duration // age of the oldest of them
	Lagging                      bool          // IndexLag is too long
	Unplaced                     bool          // has no partition of the vector store
	DriftedSweeps                int           // consecutive sweeps that found too many differences; else 0
	FailingWebhooks              int64
}
