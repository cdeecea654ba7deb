package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The values that generated filters and memories share, so that conditions match often.
var (
	filterWords  = []string{"a", "b", "ab", "B", "ä", `"`, `\`, "%", "_", "1", "true", "' or true --", "$1"}
	filterScalar = []string{`"a"`, `"b"`, `"ab"`, `"B"`, `"ä"`, `"%"`, `"\""`, `"1"`, `"true"`, `"' or true --"`,
		`1`, `1.0`, `-2`, `0`, `1e2`, `100`, `0.1`, `9007199254740993`, `true`, `false`}
	filterKeys = []string{"k", "K", "a.b", "ä", "x'y", "$1", "?"}
)

// A filter in SQL selects the same memories as the definition of its operators.
func TestFiltersSelectByTheirDefinition(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, foreign := b.users[0], b.users[1]
	work := b.createBucket(t, scope, "Work")
	matched := 0
	rapid.Check(t, func(r *rapid.T) {
		b.deleteAll(r, scope)
		for i := range rapid.IntRange(1, 8).Draw(r, "memories") {
			b.storeRandom(r, scope, i, []int64{0, work})
		}
		b.storeRandom(r, foreign, matched, []int64{0})
		all, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 99})
		if err != nil {
			r.Fatal(err)
		}
		for range 12 {
			raw := drawFilter(r, 1, all)
			var f fault.Fields
			where := filter.Parse(&f, "filter", []byte(raw))
			if err := f.Err(); err != nil {
				r.Fatalf("Parse(%s): %v", raw, err)
			}
			matched += b.checkFilter(t.Context(), r, scope, raw, where, all)
		}
	})
	if matched == 0 {
		t.Error("no filter matched a memory")
	}
}

// Memories outside of the times of a query do not count towards the maximum of Match.
func TestMatchIsWithinTheTimesOfTheQuery(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	ids := make([]string, 3)
	for i := range ids {
		for _, u := range []tenant.Scope{b.users[1], scope} {
			m := newMemory(fmt.Sprint("memory ", i))
			m.Tags = []string{"few"}
			created, err := b.Memories().Create(t.Context(), u, m)
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = created.ID
			exec(t, b.owner, "update memories set created_at = $2 where id = $1", created.ID, start.AddDate(0, 0, i))
		}
	}
	where := filter.Filter{Op: filter.Contains, Field: filter.Tags, Values: []filter.Value{{Kind: filter.String, Text: "few"}}}
	for name, test := range map[string]struct {
		query retrieve.Request
		want  []string
	}{
		"all":  {retrieve.Request{}, []string{ids[2], ids[1], ids[0]}},
		"from": {retrieve.Request{From: start.AddDate(0, 0, 1)}, []string{ids[2], ids[1]}},
		"to":   {retrieve.Request{To: start.AddDate(0, 0, 1)}, []string{ids[0]}},
		"both": {retrieve.Request{From: start.AddDate(0, 0, 1), To: start.AddDate(0, 0, 2)}, []string{ids[1]}},
	} {
		test.query.Kind, test.query.Where = retrieve.Memory, where
		got, truncated, err := b.Match(t.Context(), scope, test.query)
		if err != nil || truncated {
			t.Fatalf("%s: %v, %v", name, truncated, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// checkFilter compares the listing and the search with the definition, and returns the
// number of memories that match.
func (b *testBundle) checkFilter(ctx context.Context, r *rapid.T, scope tenant.Scope, raw string, where filter.Filter, all []memory.Memory) int {
	var want []string
	for _, m := range all {
		if defined(where, m) {
			want = append(want, m.ID)
		}
	}
	listed, _, err := b.Memories().List(ctx, scope, memory.Filter{Where: where, Limit: 99})
	if err != nil {
		r.Fatalf("List with %s: %v", raw, err)
	}
	var got []string
	for _, m := range listed {
		got = append(got, m.ID)
	}
	if !slices.Equal(got, want) {
		r.Fatalf("%s lists %d of %d memories, want %d: %+v", raw, len(got), len(all), len(want), all)
	}
	for _, limit := range []int{99, 2} {
		ids, err := b.Memories().Matching(ctx, scope, where, limit)
		if err != nil || !slices.Equal(ids, want[:min(limit, len(want))]) {
			r.Fatalf("Matching of %s, at most %d = %v, %v, want of %v", raw, limit, ids, err, want)
		}
	}
	owners, truncated, err := b.Match(ctx, scope, retrieve.Request{Kind: retrieve.Memory, Where: where})
	slices.Reverse(owners) // newest first
	if err != nil || truncated || !slices.Equal(owners, want) && len(want) > 0 {
		r.Fatalf("Match of %s = %v, %v, %v, want %v", raw, owners, truncated, err, want)
	}
	return len(want)
}

func (b *testBundle) storeRandom(r *rapid.T, scope tenant.Scope, n int, buckets []int64) {
	m := newMemory(fmt.Sprint("memory ", n, " of ", scope.User, time.Now()))
	m.Source = rapid.SampledFrom(append(filterWords, "")).Draw(r, "source")
	m.Bucket = rapid.SampledFrom(buckets).Draw(r, "bucket")
	m.AgentID = rapid.SampledFrom(append(filterWords, "")).Draw(r, "agent")
	m.RunID = rapid.SampledFrom(append(filterWords, "")).Draw(r, "run")
	m.Tags = rapid.SliceOfN(rapid.SampledFrom(filterWords), 0, 3).Draw(r, "tags")
	var members []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(filterKeys), 0, 4, rapid.ID).Draw(r, "keys") {
		value := rapid.SampledFrom(append([]string{"null", "{}", `{"a":1}`, "[[1]]"}, filterScalar...)).Draw(r, "value")
		if rapid.Bool().Draw(r, "list") {
			value = "[" + value + "," + rapid.SampledFrom(filterScalar).Draw(r, "second") + "]"
		}
		members = append(members, strconv.Quote(key)+":"+value)
	}
	m.Metadata = []byte("{" + strings.Join(members, ",") + "}")
	var f fault.Fields
	m.Attributes = m.Normalize(&f)
	if err := f.Err(); err != nil {
		r.Fatal(err)
	}
	if _, err := b.Memories().Create(context.Background(), scope, m); err != nil {
		r.Fatal(err)
	}
}

// drawFilter returns a random filter in JSON.
func drawFilter(r *rapid.T, depth int, all []memory.Memory) string {
	if depth < 4 && rapid.IntRange(0, 2).Draw(r, "group") == 0 {
		var list []string
		for range rapid.IntRange(1, 3).Draw(r, "operands") {
			list = append(list, drawFilter(r, depth+1, all))
		}
		return fmt.Sprintf(`{"%s":[%s]}`, rapid.SampledFrom([]string{"AND", "OR", "NOT"}).Draw(r, "operator"), strings.Join(list, ","))
	}
	condition := func(field, op, value string) string {
		if op == "in" {
			value = "[" + value + "]"
		}
		if op == "exists" {
			value = strconv.FormatBool(rapid.Bool().Draw(r, "exists"))
		}
		return fmt.Sprintf(`{%s:{"%s":%s}}`, quoted(field), op, value)
	}
	op := func(ops ...string) string { return rapid.SampledFrom(ops).Draw(r, "op") }
	switch field := rapid.SampledFrom([]string{"metadata", "agentId", "runId", "source", "tags", "bucketId", "createdAt", "updatedAt"}).Draw(r, "field"); field {
	case "metadata":
		field += "." + rapid.SampledFrom(filterKeys).Draw(r, "key")
		switch o := op("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains", "exists"); o {
		case "gt", "gte", "lt", "lte":
			return condition(field, o, rapid.SampledFrom(filterScalar[:18]).Draw(r, "value"))
		default:
			return condition(field, o, rapid.SampledFrom(filterScalar).Draw(r, "value"))
		}
	case "tags":
		return condition(field, op("contains", "in", "exists"), quoted(rapid.SampledFrom(filterWords).Draw(r, "value")))
	case "bucketId":
		return condition(field, op("eq", "ne", "in"), fmt.Sprint(rapid.SampledFrom(all).Draw(r, "memory").BucketID))
	case "createdAt", "updatedAt":
		at := rapid.SampledFrom(all).Draw(r, "memory").CreatedAt
		return condition(field, op("eq", "ne", "gt", "gte", "lt", "lte"), quoted(at.Format(time.RFC3339Nano)))
	default:
		return condition(field, op("eq", "ne", "in", "contains", "exists"), quoted(rapid.SampledFrom(filterWords).Draw(r, "value")))
	}
}

func quoted(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}

// defined evaluates a filter by the definition of its operators.
func defined(f filter.Filter, m memory.Memory) bool {
	matches := func(o filter.Filter) bool { return defined(o, m) }
	switch f.Op {
	case "":
		return true
	case filter.And:
		return !slices.ContainsFunc(f.Operands, func(o filter.Filter) bool { return !matches(o) })
	case filter.Or:
		return slices.ContainsFunc(f.Operands, matches)
	case filter.Not:
		return !slices.ContainsFunc(f.Operands, matches)
	case filter.Ne:
		f.Op = filter.Eq
		return !matches(f)
	}
	value, ok := attribute(f, m)
	switch f.Op {
	case filter.Exists:
		return ok == (f.Values[0].Text == "true")
	case filter.Eq, filter.In:
		if f.Field == filter.Tags {
			return slices.ContainsFunc(f.Values, func(v filter.Value) bool { return contains(value, v) })
		}
		return ok && slices.ContainsFunc(f.Values, func(v filter.Value) bool { return compare(value, v) == 0 })
	case filter.Contains:
		return ok && contains(value, f.Values[0])
	}
	c := compare(value, f.Values[0])
	switch f.Op {
	case filter.Gt:
		return c == 1
	case filter.Gte:
		return c == 1 || c == 0
	case filter.Lt:
		return c == -1
	default:
		return c == -1 || c == 0
	}
}

// attribute returns the value of a condition's field, and whether there is one.
func attribute(f filter.Filter, m memory.Memory) (any, bool) {
	switch f.Field {
	case filter.AgentID:
		return m.AgentID, m.AgentID != ""
	case filter.RunID:
		return m.RunID, m.RunID != ""
	case filter.Source:
		return m.Source, m.Source != ""
	case filter.BucketID:
		return json.Number(strconv.FormatInt(m.BucketID, 10)), true
	case filter.CreatedAt:
		return m.CreatedAt, true
	case filter.UpdatedAt:
		return m.UpdatedAt, true
	case filter.Tags:
		tags := make([]any, len(m.Tags))
		for i, t := range m.Tags {
			tags[i] = t
		}
		return tags, len(tags) > 0
	}
	dec := json.NewDecoder(bytes.NewReader(m.Metadata))
	dec.UseNumber()
	var object map[string]any
	_ = dec.Decode(&object) // empty without metadata
	v, ok := object[f.Key]
	return v, ok
}

func contains(value any, v filter.Value) bool {
	switch value := value.(type) {
	case string:
		return v.Kind == filter.String && strings.Contains(value, v.Text)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return compare(item, v) == 0 })
	}
	return false
}

// compare returns -1, 0 or 1, and 2 for values of different kinds.
func compare(value any, v filter.Value) int {
	switch value := value.(type) {
	case string:
		if v.Kind == filter.String {
			return strings.Compare(value, v.Text)
		}
	case bool:
		if v.Kind == filter.Bool && strconv.FormatBool(value) == v.Text {
			return 0
		}
	case json.Number:
		a, _ := new(big.Rat).SetString(value.String())
		b, ok := new(big.Rat).SetString(v.Text)
		if v.Kind == filter.Number && ok {
			return a.Cmp(b)
		}
	case time.Time:
		return value.Compare(v.Time)
	}
	return 2
}
