package filter_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
)

func text(s string) filter.Value { return filter.Value{Kind: filter.String, Text: s} }

func TestParse(t *testing.T) {
	t.Parallel()
	agent := filter.Filter{Op: filter.Eq, Field: filter.AgentID, Values: []filter.Value{text("a")}}
	tests := map[string]struct {
		in   string
		want filter.Filter
	}{
		"nothing":              {``, filter.Filter{}},
		"null":                 {`null`, filter.Filter{}},
		"no condition":         {`{}`, filter.Filter{}},
		"a value means eq":     {`{"agentId":"a"}`, agent},
		"an explicit operator": {`{"agentId":{"eq":"a"}}`, agent},
		"a tag means contains": {`{"tags":"x"}`, filter.Filter{Op: filter.Contains, Field: filter.Tags, Values: []filter.Value{text("x")}}},
		"members must all be true": {`{"runId":{"exists":true},"agentId":"a"}`, filter.Filter{Op: filter.And, Operands: []filter.Filter{
			agent, {Op: filter.Exists, Field: filter.RunID, Values: []filter.Value{{Kind: filter.Bool, Text: "true"}}}}}},
		"a key with dots": {`{"metadata.a.b":true}`, filter.Filter{Op: filter.Eq, Field: filter.Metadata, Key: "a.b", Values: []filter.Value{{Kind: filter.Bool, Text: "true"}}}},
		"a number":        {`{"metadata.n":{"gte":1.5e2}}`, filter.Filter{Op: filter.Gte, Field: filter.Metadata, Key: "n", Values: []filter.Value{{Kind: filter.Number, Text: "150"}}}},
		"NOT of one":      {`{"NOT":{"agentId":"a"}}`, filter.Filter{Op: filter.Not, Operands: []filter.Filter{agent}}},
		"NOT of a list":   {`{"NOT":[{"agentId":"a"}]}`, filter.Filter{Op: filter.Not, Operands: []filter.Filter{agent}}},
		"a bucket id":     {`{"bucketId":{"in":[1,"2"]}}`, filter.Filter{Op: filter.In, Field: filter.BucketID, Values: []filter.Value{{Kind: filter.Number, Text: "1"}, {Kind: filter.Number, Text: "2"}}}},
		"a date": {`{"createdAt":{"lt":"2025-05-09"}}`, filter.Filter{Op: filter.Lt, Field: filter.CreatedAt,
			Values: []filter.Value{{Kind: filter.Time, Time: time.Date(2025, 5, 9, 0, 0, 0, 0, time.UTC)}}}},
	}
	for name, test := range tests {
		var f fault.Fields
		got := filter.Parse(&f, "filter", []byte(test.in))
		if err := f.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Errors name the field and the expected value.
func TestInvalidFilters(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"AND":[`, 6) + `{"agentId":"a"}` + strings.Repeat(`]}`, 6)
	for in, want := range map[string]string{
		`[]`:                "filter must be a JSON object",
		`{"agentId":"a"} x`: "filter must be a JSON object",
		`{`:                 "filter must be a JSON object",
		`{"agentId":"` + strings.Repeat("a", 8192) + `"}`: "filter must be at most 8192 bytes, not ",
		`{"agent":"a"}`:                "filter.agent is not a field; the fields are metadata.<key>, agentId",
		`{"metadata":{"a":1}}`:         "filter.metadata is not a field",
		`{"metadata.":1}`:              "filter.metadata. is not a field",
		`{"agentId":7}`:                "filter.agentId must be a string that is not empty",
		`{"agentId":""}`:               "filter.agentId must be a string that is not empty",
		`{"agentId":{"gt":"a"}}`:       "filter.agentId.gt is not a valid operator for this field; use one of eq, ne, in, contains, exists",
		`{"agentId":{}}`:               "filter.agentId must be a value or an object with one of the operators eq",
		`{"agentId":{"in":[]}}`:        "filter.agentId.in must be a list of 1 to 100 values",
		`{"agentId":{"in":["a",1]}}`:   "filter.agentId.in[1] must be a string",
		`{"agentId":"a\u0000"}`:        "filter.agentId must not contain the character U+0000",
		`{"metadata.a\u0000":1}`:       "must not contain the character U+0000",
		`{"metadata.a":null}`:          "filter.metadata.a must be a string, a number, true or false",
		`{"metadata.a":{"gt":true}}`:   "filter.metadata.a.gt must be a string or a number",
		`{"metadata.a":1e999}`:         "filter.metadata.a must be a number of at most 40 characters",
		`{"metadata.a":{"exists":1}}`:  "filter.metadata.a.exists must be true or false",
		`{"tags":{"eq":"a"}}`:          "filter.tags.eq is not a valid operator for this field; use one of contains, in, exists",
		`{"bucketId":"x"}`:             "filter.bucketId must be an integer or a string that contains one",
		`{"createdAt":{"gte":"soon"}}`: "filter.createdAt.gte must be an RFC 3339 time or a date",
		`{"AND":{"agentId":"a"}}`:      "filter.AND must be a list of one or more filters",
		`{"OR":[]}`:                    "filter.OR must be a list of one or more filters",
		`{"OR":[{}]}`:                  "filter.OR[0] must be an object with at least one condition",
		`{"OR":[{"NOT":[{"x":1}]}]}`:   "filter.OR[0].NOT[0].x is not a field",
		deep:                           "must not be nested more than 5 levels deep",
		`{"OR":[` + strings.Repeat(`{"agentId":"a"},`, 50) + `{"agentId":"a"}]}`: "filter must have at most 50 conditions, not 51",
	} {
		var f fault.Fields
		filter.Parse(&f, "filter", []byte(in))
		err := f.Err()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.80s) = %v, want %q", in, err, want)
		}
	}
}

// Decimal does not change a number.
func TestDecimalIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		in := rapid.StringMatching(`-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?`).Draw(r, "number")
		out, ok := filter.Decimal(in)
		if !ok {
			if !strings.ContainsAny(in, "eE") {
				r.Fatalf("Decimal(%s) failed", in)
			}
			return
		}
		want, _ := new(big.Rat).SetString(in)
		got, isNumber := new(big.Rat).SetString(out)
		if !isNumber || got.Cmp(want) != 0 || strings.ContainsAny(out, "eE") || len(out) > 75 {
			r.Fatalf("Decimal(%s) = %s", in, out)
		}
		if again, ok := filter.Decimal(out); len(out) <= 40 && (!ok || again != out) {
			r.Fatalf("Decimal(%s) = %s, want it unchanged", out, again)
		}
	})
}

// Any input is either a filter within the limits or an error that names it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"agentId":"a"}`, `{"AND":[{"tags":["x"]},{"NOT":{"metadata.a":{"in":[1,"b",true]}}}]}`,
		`{"createdAt":{"gte":"2025-01-01","lt":"2025-02-01T00:00:00Z"}}`, `{"metadata.é":1e-9}`, "{\"metadata.\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var fields fault.Fields
		got := filter.Parse(&fields, "filter", raw)
		if err := fields.Err(); err != nil {
			if !strings.Contains(err.Error(), "filter") || len(err.Error()) > 64*filter.MaxBytes {
				t.Errorf("the error %q does not name the filter", err)
			}
			return
		}
		if n := conditions(got); n > filter.MaxConditions {
			t.Errorf("%d conditions", n)
		}
	})
}

func conditions(f filter.Filter) int {
	n := 0
	for _, o := range f.Operands {
		n += conditions(o)
	}
	if f.Field != "" {
		n++
	}
	return n
}
