package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxMatched is the maximum number of memories that Match returns.
const maxMatched = 20_000

// Match implements retrieve.Searcher.
func (d *DB) Match(ctx context.Context, scope tenant.Scope, query retrieve.Request) (ids []string, truncated bool, err error) {
	err = d.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) error {
		args := []any{string(scope.Tenant), int64(scope.User)}
		sql := "select m.id::text from live_memories m where m.tenant_id = $1 and m.user_id = $2"
		if query.Group != 0 {
			args = append(args, query.Group)
			sql += fmt.Sprintf(" and m.bucket_id = $%d", len(args))
		}
		if byOwner(query) {
			args = append(args, optionalTime(query.From), optionalTime(query.To))
			sql += fmt.Sprintf(` and m.created_at >= coalesce($%d::timestamptz, '-infinity') and m.created_at < coalesce($%d::timestamptz, 'infinity')`, len(args)-1, len(args))
		}
		sql += " and " + whereSQL(query.Where, &args) + fmt.Sprintf(" order by m.seq desc limit %d", maxMatched+1)
		var err error
		ids, err = collectIDs(ctx, tx, sql, args)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("match memories: %w", err)
	}
	return ids[:min(len(ids), maxMatched)], len(ids) > maxMatched, nil
}

// matching returns which of these memories match a filter.
func matching(ctx context.Context, tx db.DBTX, scope tenant.Scope, where filter.Filter, ids []string) (map[string]bool, error) {
	out := make(map[string]bool, len(ids))
	if where.IsZero() {
		for _, id := range ids {
			out[id] = true
		}
		return out, nil
	}
	args := []any{string(scope.Tenant), int64(scope.User), ids}
	found, err := collectIDs(ctx, tx, "select m.id::text from live_memories m where m.tenant_id = $1 and m.user_id = $2 and m.id = any($3::uuid[]) and "+
		whereSQL(where, &args), args)
	for _, id := range found {
		out[id] = true
	}
	return out, err
}

func collectIDs(ctx context.Context, tx db.DBTX, sql string, args []any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if ids == nil {
		ids = []string{}
	}
	return ids, err
}

// whereSQL returns the condition that row m of memories matches the filter. It is true or
// false, never null. All values are bind parameters, which it appends to args.
func whereSQL(f filter.Filter, args *[]any) string {
	w := where{args: args}
	return w.node(f)
}

// where compiles a filter.
type where struct{ args *[]any }

// bind returns the placeholder of a parameter.
func (w where) bind(v any) string {
	*w.args = append(*w.args, v)
	return fmt.Sprintf("$%d", len(*w.args))
}

func (w where) node(f filter.Filter) string {
	switch f.Op {
	case "":
		return "true"
	case filter.And:
		return w.join(f.Operands, " and ")
	case filter.Or:
		return w.join(f.Operands, " or ")
	case filter.Not:
		return "not " + w.join(f.Operands, " or ")
	case filter.Ne:
		f.Op = filter.Eq
		return "not " + w.node(f)
	}
	switch f.Field {
	case filter.Metadata:
		return w.metadata(f)
	case filter.Tags:
		return w.tags(f)
	case filter.CreatedAt:
		return w.comparison("m.created_at", f.Op, w.bind(f.Values[0].Time)+"::timestamptz")
	case filter.UpdatedAt:
		return w.comparison("m.updated_at", f.Op, w.bind(f.Values[0].Time)+"::timestamptz")
	case filter.BucketID:
		return "(m.bucket_id = any(" + w.bind(texts(f.Values)) + "::text[]::bigint[]))"
	default:
		return w.text(columns[f.Field], f)
	}
}

func (w where) join(operands []filter.Filter, with string) string {
	parts := make([]string, len(operands))
	for i, o := range operands {
		parts[i] = w.node(o)
	}
	return "(" + strings.Join(parts, with) + ")"
}

// columns are the columns of fields that contain a text, ” for none.
var columns = map[filter.Field]string{filter.AgentID: "m.agent_id", filter.RunID: "m.run_id", filter.Source: "m.source"}

// comparisons are the SQL operators of comparisons.
var comparisons = map[filter.Op]string{filter.Eq: "=", filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

func (where) comparison(left string, op filter.Op, right string) string {
	return "(" + left + " " + comparisons[op] + " " + right + ")"
}

func (w where) text(column string, f filter.Filter) string {
	switch f.Op {
	case filter.Exists:
		return "((" + column + " <> '') = " + w.bind(f.Values[0].Text == "true") + "::boolean)"
	case filter.Contains:
		return "(strpos(" + column + ", " + w.bind(f.Values[0].Text) + "::text) > 0)"
	default: // eq, in
		return "(" + column + " = any(" + w.bind(texts(f.Values)) + "::text[]))"
	}
}

func (w where) tags(f filter.Filter) string {
	if f.Op == filter.Exists {
		return "((cardinality(m.tags) > 0) = " + w.bind(f.Values[0].Text == "true") + "::boolean)"
	}
	return "(m.tags && " + w.bind(texts(f.Values)) + "::text[])" // contains, in
}

// metadata compiles a condition on a value of the metadata. A value of another type never
// matches.
func (w where) metadata(f filter.Filter) string {
	key := w.bind(f.Key) + "::text"
	value, first := "(m.metadata -> "+key+")", f.Values[0]
	switch f.Op {
	case filter.Exists:
		return "((m.metadata ? " + key + ") = " + w.bind(first.Text == "true") + "::boolean)"
	case filter.Eq, filter.In:
		return "coalesce(" + value + " = any(" + w.bind(documents(f.Values)) + "::text[]::jsonb[]), false)"
	case filter.Contains:
		out := "case jsonb_typeof" + value + " when 'array' then " + value + " @> " + w.bind(document(first)) + "::text::jsonb"
		if first.Kind == filter.String {
			out += " when 'string' then strpos(m.metadata ->> " + key + ", " + w.bind(first.Text) + "::text) > 0"
		}
		return "coalesce(" + out + " end, false)"
	}
	kind, left, right := "string", "(m.metadata ->> "+key+`) collate "C"`, w.bind(first.Text)+"::text"
	if first.Kind == filter.Number {
		kind, left, right = "number", value+"::numeric", right+"::numeric"
	}
	return "coalesce(case when jsonb_typeof" + value + " = '" + kind + "' then " + w.comparison(left, f.Op, right) + " end, false)"
}

// document returns a value as JSON.
func document(v filter.Value) string {
	if v.Kind != filter.String {
		return v.Text
	}
	out, err := json.Marshal(v.Text)
	if err != nil {
		panic("a string has no JSON: " + err.Error()) // cannot happen
	}
	return string(out)
}

func documents(values []filter.Value) []string { return collect(values, document) }

func texts(values []filter.Value) []string {
	return collect(values, func(v filter.Value) string { return v.Text })
}
