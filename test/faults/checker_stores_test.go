package faults_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// failed reports a comparison that was not possible: it is repeated.
func failed(what string, err error) []violation {
	return []violation{{Kind: stuck, Text: fmt.Sprintf("%s: %v", what, err)}}
}

// jobs returns the jobs that have not ended. Periodic jobs, and drops of migrated
// partitions, which wait for late writers, are not part of an operation. Jobs of imports
// remain after the import, which imports checks: those of a server that was killed, and
// those that check whether an upload was continued.
func (c *checker) jobs(ctx context.Context) []violation {
	found, err := c.find(ctx, stuck, `
		select '', kind || ' ' || id, format('job is %s, attempt %s at %s, scheduled at %s: %s', state, attempt, attempted_at, scheduled_at, args)
		from river_job where kind not in ('index.sweep', 'retention', 'placement.drop')
			and (state = 'discarded' or kind <> 'chat.import' and state in ('available', 'running', 'retryable', 'scheduled', 'pending'))`)
	if err != nil {
		return failed("list jobs", err)
	}
	return found
}

// imports returns the imports that have not ended. An upload that was cut off stays
// until it is resumed or expires.
func (c *checker) imports(ctx context.Context) []violation {
	found, err := c.find(ctx, stuck, `
		select t.name || '/' || u.name, i.id::text, 'import is ' || i.status
		from imports i join tenants t on t.id = i.tenant_id join users u on u.tenant_id = i.tenant_id and u.id = i.user_id
		where i.status in ('queued', 'running')`)
	if err != nil {
		return failed("list imports", err)
	}
	return found
}

// page is the number of vectors that are listed at a time.
const page = 10_000

// vectors compares the live units of each tenant with the vectors in its placement.
func (c *checker) vectors(ctx context.Context) (out []violation) {
	rows, err := c.Owner.Query(ctx, `select t.id::text, t.name, p.collection, p.partition, p.shared,
		array(select id from units u where u.tenant_id = t.id and u.active order by id)
		from tenants t join placements p on p.tenant_id = t.id`)
	if err != nil {
		return failed("list units", err)
	}
	type placementRow struct {
		ID                    tenant.ID
		Name                  string
		Collection, Partition string
		Shared                bool
		Units                 []retrieve.UnitID
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placementRow])
	if err != nil {
		return failed("list units", err)
	}
	for _, p := range list {
		at := placement.Location{Collection: p.Collection, Partition: p.Partition, Shared: p.Shared}
		found, err := c.list(ctx, p.ID, at)
		if err != nil {
			return failed("list vectors", err)
		}
		for _, id := range found {
			if _, ok := slices.BinarySearch(p.Units, id); !ok {
				out = append(out, violation{orphaned, p.Name, fmt.Sprint("unit ", id), "is in Milvus, but not in PostgreSQL"})
			}
		}
		for _, id := range p.Units {
			if _, ok := slices.BinarySearch(found, id); !ok {
				out = append(out, violation{unindexed, p.Name, fmt.Sprint("unit ", id), "is in PostgreSQL, but not in Milvus"})
			}
		}
	}
	return out
}

// list returns all vectors of a placement, in order.
func (c *checker) list(ctx context.Context, id tenant.ID, at placement.Location) (out []retrieve.UnitID, err error) {
	for after := retrieve.UnitID(0); ; {
		found, err := c.Index.List(ctx, id, at, after, page)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if len(found) < page {
			return out, nil
		}
		after = found[len(found)-1]
	}
}

// partitions returns the partitions and keys in Milvus that belong to no tenant.
func (c *checker) partitions(ctx context.Context) (out []violation) {
	inside, err := milvustest.Connect(ctx, c.Milvus)
	if err != nil {
		return failed("connect to Milvus", err)
	}
	defer func() { _ = inside.Close() }()
	there, err := milvustest.Locations(ctx, inside, c.Prefix())
	if err != nil {
		return failed("list partitions", err)
	}
	rows, err := c.Owner.Query(ctx, "select cell, collection, partition, shared from placements")
	if err != nil {
		return failed("list placements", err)
	}
	placements, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placement.Location])
	if err != nil {
		return failed("list placements", err)
	}
	for _, at := range there {
		if !slices.Contains(placements, at) {
			out = append(out, violation{orphaned, "", at.Partition, fmt.Sprintf("%+v belongs to no tenant", at)})
		}
	}
	return out
}

// tenants returns the Tenants that are not reconciled.
func (c *checker) tenants(ctx context.Context) (out []violation) {
	var list v1alpha1.TenantList
	if err := c.Client.List(ctx, &list, kube.InNamespace(c.Namespace)); err != nil {
		return failed("list Tenants", err)
	}
	for i := range list.Items {
		if t := &list.Items[i]; !c.isReady(ctx, t.Name) || !t.DeletionTimestamp.IsZero() {
			out = append(out, violation{stuck, t.Name, "Tenant", fmt.Sprintf("is not reconciled: %+v", t.Status.Conditions)})
		}
	}
	return out
}

// purged: there is no erased user, whose row is deleted last, and no table has rows of a tenant that does not exist, except records of erasures,
// the audit log and the usage for its bill, which name no users.
func (c *checker) purged(ctx context.Context) error {
	err := c.reportAll(ctx, reappeared, `select t.name || '/' || u.name, '', 'the row of an erased user is left'
		from users u join tenants t on t.id = u.tenant_id where u.purging`)
	if err != nil {
		return fmt.Errorf("erased users: %w", err)
	}
	rows, err := c.Owner.Query(ctx, `select table_name::text from information_schema.columns
		where table_schema = 'public' and column_name = 'tenant_id' and table_name not in ('erasures', 'usage_days') and table_name not like 'audit%'`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		err := c.reportAll(ctx, reappeared, fmt.Sprintf(`select tenant_id::text, '', format('%%s rows of a deleted tenant in %s', count(*))
			from %s where tenant_id not in (select id from tenants) group by tenant_id`, table, table))
		if err != nil {
			return fmt.Errorf("rows of deleted tenants in %s: %w", table, err)
		}
	}
	return nil
}

// list returns the texts of all memories by id, page by page.
func (a *account) list(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for skip := 0; ; {
		answer, err := a.apis[skip%len(a.apis)].ListMemories(ctx, &client.ListMemoriesParams{All: new(true), Skip: &skip})
		if err != nil {
			return nil, err
		}
		for _, m := range answer.Body.Memories {
			out[m.ID] = m.Text
		}
		if answer.Body.NextSkip == nil {
			return out, nil
		}
		skip = int(*answer.Body.NextSkip)
	}
}
