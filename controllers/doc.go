// Package controllers is the operator. For each Tenant it stores a tenant with
// its users and quotas, creates a partition in the vector index, writes a Secret
// for each user, and corrects drift. When a Tenant is deleted, it retains or
// purges the data. tenant_controller.go has the order of the steps; each step has
// a file.
//
// The stores are known only as the interfaces of package tenant.
package controllers
