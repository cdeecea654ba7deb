package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type reassignCommand struct {
	databaseFlags
	Tenant       string `arg:"" name:"name" help:"Retained tenants to reassign: a namespace, namespace/name, or a UID or ID."`
	NamespaceUID string `required:"" help:"UID of the namespace that may adopt the data: kubectl get namespace NAME -o jsonpath={.metadata.uid}"`
	Cluster      string `help:"UID of the kube-system namespace of that namespace's cluster. Default: the tenant's current cluster."`
	FromCluster  string `help:"Only tenants of this cluster: the UID of its kube-system namespace."`
}

// Run reassigns the retained tenants. A Tenant of the same namespace and name
// then adopts the data.
func (c *reassignCommand) Run(ctx context.Context) error {
	if _, err := uuid.Parse(c.NamespaceUID); err != nil { // "" if kubectl failed
		return fault.New(fault.Invalid, "--namespace-uid must be the UID of a namespace, but is %q", c.NamespaceUID)
	}
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := db.Records(ctx, tenant.RecordsOf{Cluster: c.FromCluster})
	if err != nil {
		return err
	}
	retained := inState(named(records, c.Tenant), tenant.Retained)
	if len(retained) == 0 {
		return fault.New(fault.NotFound, "no retained tenant %s; list them with `mnemo tenants list --retained`", c.Tenant)
	}
	if clusters := clustersOf(retained); len(clusters) > 1 {
		return fault.New(fault.Conflict, "%s has retained tenants of several clusters: choose one with --from-cluster: %s",
			c.Tenant, strings.Join(clusters, ", "))
	}
	for _, r := range retained {
		if err := db.Reassign(ctx, r.ID, tenant.Owner{Cluster: c.Cluster, NamespaceUID: c.NamespaceUID}); err != nil {
			return err
		}
		if _, err := fmt.Printf("reassigned tenant %s/%s (%s) to namespace %s\n", r.Namespace, r.Name, r.Resource, c.NamespaceUID); err != nil {
			return err
		}
	}
	return nil
}

func clustersOf(records []tenant.Record) (clusters []string) {
	for _, r := range records {
		clusters = append(clusters, r.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// named returns the records of a namespace, or with a namespace/name, UID or ID.
func named(records []tenant.Record, name string) (out []tenant.Record) {
	for _, r := range records {
		if name == r.Namespace || name == r.Namespace+"/"+r.Name || name == string(r.Resource) || name == string(r.ID) {
			out = append(out, r)
		}
	}
	return out
}
