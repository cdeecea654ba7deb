package apiserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/common/expfmt"
)

// hidesSecrets searches everything that the run left behind for the secrets that it
// created: the log, the metrics, the audit log, and all columns of the database.
func (x *auditedRun) hidesSecrets(t *testing.T) {
	t.Helper()
	const canary = "a canary that must be found"
	x.ok(t, x.secrets["token after replacement"], "POST", "/api/memory", `{"text":"`+canary+`"}`)
	if got := x.searchDatabase(t, canary); len(got) == 0 {
		t.Error("the search of the database does not find a text that is there")
	}
	everything := map[string]string{"log": x.log.String(), "metrics": x.metricsText(t), "audit log": fmt.Sprint(x.records(t))}
	for name, secret := range x.secrets {
		if len(secret) < 20 {
			t.Errorf("the %s is %q, want a secret", name, secret)
			continue
		}
		for place, text := range everything {
			if strings.Contains(text, secret) {
				t.Errorf("the %s contains the %s", place, name)
			}
		}
		for _, column := range x.searchDatabase(t, secret) {
			t.Errorf("column %s contains the %s", column, name)
		}
	}
}

func (x *auditedRun) metricsText(t *testing.T) string {
	t.Helper()
	families, err := x.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// searchDatabase returns the columns of all tables that contain a text, including binary
// and structured columns.
func (x *auditedRun) searchDatabase(t *testing.T, text string) (found []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), x.s.ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `select format('%I', c.relname), format('%I', a.attname), t.typname = 'bytea'
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped join pg_type t on t.oid = a.atttypid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and t.typname in ('text', 'varchar', '_text', '_varchar', 'json', 'jsonb', 'bytea', 'tsvector')`)
	if err != nil {
		t.Fatal(err)
	}
	type column struct {
		Table, Name string
		Binary      bool
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		condition := fmt.Sprintf("position($1 in %s::text) > 0", c.Name)
		if c.Binary {
			condition = fmt.Sprintf("position(convert_to($1, 'UTF8') in %s) > 0", c.Name)
		}
		var is bool
		if err := conn.QueryRow(t.Context(), fmt.Sprintf("select exists (select from %s where %s)", c.Table, condition), text).Scan(&is); err != nil {
			t.Fatal(err)
		}
		if is {
			found = append(found, c.Table+"."+c.Name)
		}
	}
	return found
}
