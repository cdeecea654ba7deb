package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// dimensions of the local model's vectors.
const dimensions = 384

// query queries one column from PostgreSQL as the owner role, which sees every row.
func query[T any](t *testing.T, sql string, args ...any) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), platform.env["DATABASE_OWNER_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tenantTables returns the tables that hold a tenant's data. The audit log and the daily
// usage, which have neither content nor names, outlive the tenant.
func tenantTables(t *testing.T) []string {
	t.Helper()
	return query[string](t, `select table_name::text from information_schema.columns
		where table_schema = 'public' and column_name = 'tenant_id' and table_name <> 'usage_days' and table_name not like 'audit%' order by 1`)
}

// rowsOf describes the rows of a tenant in PostgreSQL; "" means none.
func rowsOf(t *testing.T, uid string) string {
	t.Helper()
	var left []string
	for _, table := range tenantTables(t) {
		sql := "select count(*) from " + pgx.Identifier{table}.Sanitize() + " where tenant_id = $1::text::uuid"
		if n := query[int64](t, sql, uid)[0]; n > 0 {
			left = append(left, fmt.Sprintf("%d %s", n, table))
		}
	}
	return strings.Join(left, ", ")
}

// rowsWith counts the rows of all tables that contain the text.
func rowsWith(t *testing.T, text string) int64 {
	t.Helper()
	var n int64
	for _, table := range query[string](t, `select table_name::text from information_schema.tables
		where table_schema = 'public' and table_type = 'BASE TABLE'`) {
		sql := "select count(*) from " + pgx.Identifier{table}.Sanitize() + " x where position($1 in x::text) > 0"
		n += query[int64](t, sql, text)[0]
	}
	return n
}

func unitsOf(t *testing.T, memory string) []retrieve.UnitID {
	t.Helper()
	return query[retrieve.UnitID](t, "select id from units where memory_id = $1::text::uuid order by id", memory)
}

// unindexed returns a message with the number of live units of the Tenant that are
// not indexed; "" means none.
func unindexed(t *testing.T, name string) string {
	t.Helper()
	n := query[int64](t, `select count(*) from units u join tenants t on t.id = u.tenant_id
		where t.name = $1 and t.state = 'active' and u.active and u.indexed_at is null`, name)[0]
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d units are not indexed", n)
}

func placementOf(t *testing.T, uid string) placement.Location {
	t.Helper()
	names := query[[]string](t, "select array[collection, partition] from placements where tenant_id = $1::text::uuid", uid)
	if len(names) != 1 {
		t.Fatalf("tenant %s has %d placements", uid, len(names))
	}
	return placement.Location{Collection: names[0][0], Partition: names[0][1]}
}

// outgrow marks the Tenant as if one of its users had outgrown exact scoring, and waits until it is
// in the index.
func outgrow(t *testing.T, name string) {
	t.Helper()
	query[string](t, "update tenants set outgrown_at = now() where name = $1 and state = 'active' returning name", name)
	waitIndexed(t, name)
}

// waitIndexed waits until the Tenant is in the index.
func waitIndexed(t *testing.T, name string) {
	t.Helper()
	uid := query[string](t, "select id::text from tenants where name = $1 and state = 'active'", name)[0]
	eventually(t, 2*time.Minute, func() string {
		if !placementOf(t, uid).Indexed() {
			return "the Tenant is in no index"
		}
		return ""
	})
}

func openMilvus(t *testing.T) *milvus.Index {
	t.Helper()
	index, err := milvus.Open(t.Context(), milvus.Config{
		Address: platform.env["MILVUS_ADDRESS"], Username: platform.env["MILVUS_USERNAME"],
		Password: platform.env["MILVUS_PASSWORD"], Dimensions: dimensions,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

// indexed returns the units that Milvus contains, with strong consistency.
func indexed(t *testing.T, name string, units []retrieve.UnitID) []retrieve.UnitID {
	t.Helper()
	uid := query[string](t, "select id::text from tenants where name = $1 and state = 'active'", name)[0]
	index, location := openMilvus(t), placementOf(t, uid)
	var out []retrieve.UnitID
	for _, id := range units {
		held, err := index.List(t.Context(), tenant.ID(uid), location, id-1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(held) == 1 && held[0] == id {
			out = append(out, id)
		}
	}
	return out
}

// hasPartition reports whether Milvus has the partition. Listing fails for a
// missing one.
func hasPartition(t *testing.T, location placement.Location) bool {
	t.Helper()
	_, err := openMilvus(t).List(t.Context(), "", location, 0, 1)
	return err == nil
}
