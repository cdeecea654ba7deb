package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tenantsCommand groups the commands for tenants in the database, including
// those whose Tenant resource no longer exists.
type tenantsCommand struct {
	List   listCommand   `cmd:"" help:"List the tenants in the database, including those whose Tenant was deleted."`
	Purge  purgeCommand  `cmd:"" help:"Permanently delete the data of a retained tenant, or repeat a purge that failed."`
	Retire retireCommand `cmd:"" help:"Retire a tenant that was copied to another database, or the tenants of a cluster that no longer exists: revoke their tokens and retain their data."`

	Copy     copyCommand     `cmd:"" help:"Copy a suspended or retained tenant to another database."`
	Reassign reassignCommand `cmd:"" help:"Permit another namespace to adopt the data of retained tenants, for example after it was deleted and created again."`
}

type listCommand struct {
	databaseFlags
	Retained bool   `help:"Only tenants whose Tenant was deleted and whose data is retained."`
	Cluster  string `help:"Only tenants of this cluster: the UID of its kube-system namespace."`
}

// Run prints a table of tenants.
func (c *listCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := db.Records(ctx, tenant.RecordsOf{Cluster: c.Cluster})
	if err != nil {
		return err
	}
	if c.Retained {
		records = inState(records, tenant.Retained)
	}
	return printRecords(os.Stdout, records)
}

// open connects to PostgreSQL for a command that does not use the index.
func (f databaseFlags) open(ctx context.Context) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Config{URL: f.DatabaseURL, MaxConns: f.DatabaseConnections, Generation: defaultGeneration, RestoreID: f.RestoreID})
}

func inState(records []tenant.Record, state tenant.State) []tenant.Record {
	var out []tenant.Record
	for _, r := range records {
		if r.State == state {
			out = append(out, r)
		}
	}
	return out
}

// printRecords writes a table.
func printRecords(to io.Writer, records []tenant.Record) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSTATE\tPOLICY\tRETIRED\tUSERS\tMEMORIES\tCONVERSATIONS\tBYTES\tUID\tCLUSTER")
	for _, r := range records {
		retired := ""
		if !r.RetiredAt.IsZero() {
			retired = r.RetiredAt.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.Namespace, r.Name, r.State, r.Policy, retired,
			r.Usage.Users, r.Usage.Memories, r.Usage.Conversations+r.Usage.Blocked, r.Usage.Storage, r.Resource, r.Cluster)
	}
	return w.Flush()
}

type purgeCommand struct {
	databaseFlags
	milvusFlags
	Tenant string `arg:"" name:"name" help:"Tenant to purge: namespace/name, or its UID or ID."`
	Yes    bool   `help:"Skip the confirmation."`
}

// Run deletes the rows and the Milvus partition of a retained tenant.
func (c *purgeCommand) Run(ctx context.Context, log *slog.Logger) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return err
	}
	record, err := findRetained(records, c.Tenant)
	if err != nil {
		return err
	}
	name := record.Namespace + "/" + record.Name
	if !c.Yes {
		prompt := fmt.Sprintf("This permanently deletes %d memories and %d conversations. Type %s to confirm: ",
			record.Usage.Memories, record.Usage.Conversations+record.Usage.Blocked, name)
		if err := confirm(os.Stdin, os.Stdout, prompt, name); err != nil {
			return err
		}
	}
	index, err := c.milvusFlags.open(ctx, defaultGeneration.Dimensions, log)
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }()
	if _, err := db.Retire(ctx, record.Resource, tenant.Delete); err != nil {
		return err
	}
	// A background job would purge the data as well. Doing it here reports the result.
	if err := tenant.Purge(ctx, db, index, record.ID); err != nil {
		return fmt.Errorf("the purge is incomplete; repeat it with `mnemo tenants purge %s`: %w", record.ID, err)
	}
	_, err = fmt.Printf("purged tenant %s (%s)\n", name, record.Resource)
	return err
}

// findRetained returns the retained tenant with a namespace/name, UID or ID. If there is none, it returns one that
// is being purged, so that a failed purge can be repeated.
func findRetained(records []tenant.Record, name string) (tenant.Record, error) {
	var matches []tenant.Record
	for _, r := range records {
		if name == r.Namespace+"/"+r.Name || name == string(r.Resource) || name == string(r.ID) {
			matches = append(matches, r)
		}
	}
	retained := inState(matches, tenant.Retained)
	if len(retained) == 0 {
		retained = inState(matches, tenant.Purging)
	}
	switch {
	case len(matches) == 0:
		return tenant.Record{}, fault.New(fault.NotFound, "tenant %s not found; list retained tenants with `mnemo tenants list --retained`", name)
	case len(retained) == 0:
		return tenant.Record{}, fault.New(fault.Conflict, "tenant %s is %s; only retained tenants can be purged: delete its Tenant first", name, matches[0].State)
	case len(retained) > 1:
		return tenant.Record{}, fault.New(fault.Conflict, "%d retained tenants are named %s; give the UID of one of them", len(retained), name)
	}
	return retained[0], nil
}

// findTenant returns the tenant with a namespace/name, UID or ID, in any state.
func findTenant(records []tenant.Record, name string) (tenant.Record, error) {
	var found []tenant.Record
	for _, r := range records {
		if name == r.Namespace+"/"+r.Name || name == string(r.Resource) || name == string(r.ID) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return tenant.Record{}, fault.New(fault.NotFound, "tenant %s not found; list tenants with `mnemo tenants list`", name)
	case 1:
		return found[0], nil
	}
	return tenant.Record{}, fault.New(fault.Conflict, "%d tenants are named %s; give the ID of one of them, as listed by `mnemo tenants list`", len(found), name)
}

// tenantFlags select a tenant in the database.
type tenantFlags struct {
	databaseFlags
	Tenant string `required:"" help:"Tenant: namespace/name, or its UID or ID."`
}

// run calls fn with the database and the ID of the tenant.
func (f tenantFlags) run(ctx context.Context, fn func(*postgres.DB, tenant.ID) error) error {
	db, err := f.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	id, err := tenantID(ctx, db, f.Tenant)
	if err != nil {
		return err
	}
	return fn(db, id)
}

// tenantID returns the ID of a tenant, by namespace/name, UID or ID.
func tenantID(ctx context.Context, db *postgres.DB, name string) (tenant.ID, error) {
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return "", err
	}
	found, err := findTenant(records, name)
	return found.ID, err
}

// confirm asks the user to type a word.
func confirm(from io.Reader, to io.Writer, prompt, word string) error {
	fmt.Fprint(to, prompt)
	answer, _ := bufio.NewReader(from).ReadString('\n') // EOF counts as an empty answer
	if strings.TrimSpace(answer) != word {
		return fmt.Errorf("not confirmed; nothing was changed (--yes skips the confirmation)")
	}
	return nil
}

type retireCommand struct {
	databaseFlags
	Cluster string `required:"" xor:"tenants" help:"UID of the kube-system namespace of the cluster, as listed by mnemo tenants list."`
	Tenant  string `required:"" xor:"tenants" help:"Tenant: namespace/name, or its UID or ID. No operator may reconcile its Tenant with this database."`
	Yes     bool   `help:"Skip the confirmation."`
}

// Run retires the tenant, or every active tenant of the cluster.
func (c *retireCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if c.Tenant != "" {
		return c.retireTenant(ctx, db)
	}
	records, err := db.Records(ctx, tenant.RecordsOf{Cluster: c.Cluster})
	if err != nil {
		return err
	}
	active := inState(records, tenant.Active)
	if len(active) > 0 && !c.Yes {
		prompt := fmt.Sprintf("This revokes the access of all users of %d tenants. Type the cluster's UID to confirm: ", len(active))
		if err := confirm(os.Stdin, os.Stdout, prompt, c.Cluster); err != nil {
			return err
		}
	}
	for _, r := range active {
		if err := db.MarkOrphaned(ctx, r.ID); err != nil {
			return err
		}
	}
	_, err = fmt.Printf("retired %d tenants of cluster %s; permit other namespaces to adopt their data with mnemo tenants reassign\n", len(active), c.Cluster)
	return err
}

func (c *retireCommand) retireTenant(ctx context.Context, db *postgres.DB) error {
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return err
	}
	record, err := findTenant(records, c.Tenant)
	if err != nil {
		return err
	}
	name := record.Namespace + "/" + record.Name
	if record.State != tenant.Active {
		return fault.New(fault.Conflict, "tenant %s is already %s", name, record.State)
	}
	if !c.Yes {
		if err := confirm(os.Stdin, os.Stdout, "This revokes the access of all users. Type "+name+" to confirm: ", name); err != nil {
			return err
		}
	}
	if err := db.RetireCopied(ctx, record.ID); err != nil {
		return err
	}
	_, err = fmt.Printf("retired tenant %s; delete its data with mnemo tenants purge\n", name)
	return err
}
