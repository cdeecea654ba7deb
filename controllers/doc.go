// Package controllers is the operator: it makes of each Tenant resource a
// tenant in the stores, a partition in the index and a Secret for each user,
// repairs what drifts from that, and lets go of it all when the Tenant is
// deleted. tenant_controller.go decides; each concern has a file of its own.
//
// It knows the stores only as the interfaces of package tenant.
package controllers
