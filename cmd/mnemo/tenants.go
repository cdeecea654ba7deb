package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tenantsCommand is what a host does about tenants beside `kubectl`.
type tenantsCommand struct {
	List   listCommand   `cmd:"" default:"withargs" help:"List what is stored of tenants, whether or not their Tenant is there, and purge what was retained."`
	Retire retireCommand `cmd:"" help:"Give up the tenants of a cluster that is gone: tokens are revoked, data waits to be claimed."`
}

type listCommand struct {
	databaseFlags
	Retained bool      `help:"Only those whose Tenant is deleted and whose data is kept."`
	Cluster  string    `help:"Only those of the cluster with this uid of its kube-system namespace."`
	Purge    tenant.ID `placeholder:"UID" help:"Remove a retained tenant's data for good: rows, and the partition in Milvus (MILVUS_ADDRESS)."`
	Yes      bool      `help:"Do not ask before purging."`

	// As milvusFlags, but only a purge needs them.
	MilvusAddress  string `env:"MILVUS_ADDRESS" help:"host:port of Milvus; https://host:port for TLS."`
	MilvusUsername string `env:"MILVUS_USERNAME" help:"User of Milvus, if it asks for one."`
	MilvusPassword string `env:"MILVUS_PASSWORD" help:"Password of that user."`
	MilvusCA       string `env:"MILVUS_CA" type:"existingfile" help:"PEM file of the authority that signed Milvus' certificate. Default: the system's."`
}

// Run lists or purges.
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
	if c.Purge != "" {
		return c.purge(ctx, db, records)
	}
	if c.Retained {
		records = only(records, tenant.Retained)
	}
	return printRecords(os.Stdout, records)
}

// open connects to PostgreSQL for a command that needs nothing of the index.
func (f databaseFlags) open(ctx context.Context) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Config{URL: f.DatabaseURL, MaxConns: f.DatabaseConnections, Generation: localGeneration})
}

func only(records []tenant.Record, state tenant.State) []tenant.Record {
	var out []tenant.Record
	for _, r := range records {
		if r.State == state {
			out = append(out, r)
		}
	}
	return out
}

// printRecords writes a table. UID is what spec.claim and --purge take.
func printRecords(to io.Writer, records []tenant.Record) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSTATE\tPOLICY\tSINCE\tUSERS\tMEMORIES\tCONVERSATIONS\tBYTES\tUID\tCLUSTER")
	for _, r := range records {
		since := ""
		if !r.RetiredAt.IsZero() {
			since = r.RetiredAt.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.Namespace, r.Name, r.State, r.Policy, since,
			r.Usage.Users, r.Usage.Memories, r.Usage.Conversations+r.Usage.Blocked, r.Usage.Storage, r.Resource, r.Cluster)
	}
	return w.Flush()
}

// purge removes a retained tenant after it was confirmed.
func (c *listCommand) purge(ctx context.Context, db *postgres.DB, records []tenant.Record) error {
	record, err := c.toPurge(records)
	if err != nil {
		return err
	}
	if !c.Yes {
		question := fmt.Sprintf("This removes %d memories and %d conversations for good. Type %s/%s to go on: ",
			record.Usage.Memories, record.Usage.Conversations+record.Usage.Blocked, record.Namespace, record.Name)
		if err := confirm(os.Stdin, os.Stdout, question, record.Namespace+"/"+record.Name); err != nil {
			return err
		}
	}
	if c.MilvusAddress == "" {
		return fmt.Errorf("--purge drops the tenant's partition too: set --milvus-address or MILVUS_ADDRESS")
	}
	index, err := milvusFlags{
		MilvusAddress: c.MilvusAddress, MilvusUsername: c.MilvusUsername, MilvusPassword: c.MilvusPassword, MilvusCA: c.MilvusCA,
	}.open(ctx, localGeneration.Dimensions)
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }()
	keeper := tenant.Keeper{Records: db, Store: db, Partitions: index}
	if err := keeper.Discard(ctx, record); err != nil {
		return err
	}
	// A server's job would do it too; here it is seen to be done.
	if err := db.Purge(ctx, record.ID); err != nil {
		return err
	}
	_, err = fmt.Printf("purged %s/%s (%s)\n", record.Namespace, record.Name, record.Resource)
	return err
}

// toPurge finds what may be purged by the uid given.
func (c *listCommand) toPurge(records []tenant.Record) (tenant.Record, error) {
	for _, r := range records {
		if r.Resource != c.Purge && r.ID != c.Purge {
			continue
		}
		if r.State != tenant.Retained {
			return r, fault.New(fault.Conflict, "tenant %s/%s is %s: only retained ones are purged by hand; delete its Tenant first", r.Namespace, r.Name, r.State)
		}
		return r, nil
	}
	return tenant.Record{}, fault.New(fault.NotFound, "there is no tenant %s: `mnemo tenants --retained` lists what --purge takes", c.Purge)
}

// confirm asks a person to type a word.
func confirm(from io.Reader, to io.Writer, question, word string) error {
	fmt.Fprint(to, question)
	answer, _ := bufio.NewReader(from).ReadString('\n') // an end without an answer is a no
	if strings.TrimSpace(answer) != word {
		return fmt.Errorf("nothing was done: it was not confirmed (--yes goes on without asking)")
	}
	return nil
}

type retireCommand struct {
	databaseFlags
	Cluster string `required:"" help:"uid of the kube-system namespace of the cluster that is gone; mnemo tenants lists them."`
	Yes     bool   `help:"Do not ask first."`
}

// Run retires every active tenant of the cluster.
func (c *retireCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := db.Records(ctx, tenant.RecordsOf{Cluster: c.Cluster})
	if err != nil {
		return err
	}
	active := only(records, tenant.Active)
	if len(active) > 0 && !c.Yes {
		question := fmt.Sprintf("This ends the access of all users of %d tenants. Type the cluster's uid to go on: ", len(active))
		if err := confirm(os.Stdin, os.Stdout, question, c.Cluster); err != nil {
			return err
		}
	}
	for _, r := range active {
		if err := db.Abandon(ctx, r.ID); err != nil {
			return err
		}
	}
	_, err = fmt.Printf("retired %d tenants of cluster %s: a Tenant of the same namespace and name adopts each by spec.claim\n", len(active), c.Cluster)
	return err
}
