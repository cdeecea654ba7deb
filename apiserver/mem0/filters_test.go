package mem0

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// parsed returns a filter in our grammar.
func parsed(t *testing.T, raw string) filter.Filter {
	t.Helper()
	var problems fault.Fields
	out := filter.Parse(&problems, "filter", []byte(raw))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func objectOf(t *testing.T, raw string) object {
	t.Helper()
	members, err := parseObject("filters", json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return object{"filters", members}
}

var (
	byToken = Request{}
	byKey   = Request{Who: tenant.Identity{Application: &tenant.Application{}}}
)

func TestSelectBy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		r        Request
		in, want string
		user     string
	}{
		"Empty":    {"an empty filter matches everything", byToken, `{}`, ``, ""},
		"Entities": {"entities of one object must all match", byToken, `{"user_id":"u","agent_id":"a","app_id":"p","run_id":"r"}`, `{"agentId":"a","metadata.app_id":"p","metadata.user_id":"u","runId":"r"}`, ""},
		"Groups": {"AND, OR and NOT nest", byToken, `{"AND":[{"user_id":"u"},{"OR":[{"run_id":"1"},{"NOT":{"agent_id":"a"}}]}]}`,
			`{"AND":[{"metadata.user_id":"u"},{"OR":[{"runId":"1"},{"NOT":[{"agentId":"a"}]}]}]}`, ""},
		"NotList":   {"NOT may be a list", byToken, `{"NOT":[{"agent_id":"a"},{"run_id":"r"}]}`, `{"NOT":[{"agentId":"a"},{"runId":"r"}]}`, ""},
		"Operators": {"operators keep their meaning", byToken, `{"user_id":{"in":["a","b"]},"run_id":{"ne":"r"},"agent_id":{"contains":"x"}}`, `{"metadata.user_id":{"in":["a","b"]},"runId":{"ne":"r"},"agentId":{"contains":"x"}}`, ""},
		"Wildcards": {"a wildcard matches every value that is present", byToken, `{"user_id":"*","agent_id":{"in":["*"]},"run_id":{"ne":"*"},"app_id":{"eq":"*"}}`,
			`{"metadata.user_id":{"exists":true},"agentId":{"exists":true},"runId":{"exists":false},"metadata.app_id":{"exists":true}}`, ""},
		"Null":     {"null matches a missing value", byToken, `{"agent_id":null,"run_id":{"ne":null}}`, `{"agentId":{"exists":false},"runId":{"exists":true}}`, ""},
		"Metadata": {"conditions on metadata keep their types", byToken, `{"metadata":{"year":{"gte":2024.50},"k":"v","ok":true,"any":"*"}}`, `{"metadata.year":{"gte":2024.50},"metadata.k":"v","metadata.ok":true,"metadata.any":{"exists":true}}`, ""},
		"Times": {"times without a zone are in UTC, strings in the metadata are not times", byToken,
			`{"created_at":{"gte":"2025-05-09","lt":"2025-05-10T12:00:00.5"},"updated_at":{"lte":"2025-05-10 12:00:00"},"metadata":{"at":"2025-05-10 12:00:00"}}`,
			`{"createdAt":{"gte":"2025-05-09","lt":"2025-05-10T12:00:00.5Z"},"updatedAt":{"lte":"2025-05-10T12:00:00Z"},"metadata.at":"2025-05-10 12:00:00"}`, ""},

		"Key":        {"an application key acts for the user", byKey, `{"user_id":"u","agent_id":"a"}`, `{"agentId":"a"}`, "u"},
		"KeyNested":  {"the user may be in a list of AND", byKey, `{"AND":[{"agent_id":"a"},{"AND":[{"user_id":{"eq":"u"}}]}]}`, `{"AND":[{"agentId":"a"}]}`, "u"},
		"KeyOnly":    {"a filter of only the user matches everything", byKey, `{"AND":[{"user_id":{"in":["u"]}}]}`, ``, "u"},
		"KeyWithout": {"a header may name the user", byKey, `{"agent_id":"a"}`, `{"agentId":"a"}`, ""},
	} {
		got, err := selectBy(test.r, objectOf(t, test.in))
		if err != nil {
			t.Errorf("%s (%s): %v", name, test.reason, err)
			continue
		}
		if got.user != test.user {
			t.Errorf("%s (%s): user %q, want %q", name, test.reason, got.user, test.user)
		}
		if diff := cmp.Diff(sortedOperands(parsed(t, test.want)), sortedOperands(got.where)); diff != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", name, test.reason, diff)
		}
	}
}

// sortedOperands returns a filter in a form that does not depend on the order of members.
func sortedOperands(f filter.Filter) string {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// What cannot be translated is refused, with the path, and never ignored.
func TestRefusedFilters(t *testing.T) {
	t.Parallel()
	for in, test := range map[string]struct {
		r    Request
		want string
	}{
		`{"categories":{"contains":"x"}}`:                     {byToken, "filters.categories is not supported"},
		`{"AND":[{"memory_ids":["x"]}]}`:                      {byToken, "filters.AND[0].memory_ids is not supported"},
		`{"user_id":{"icontains":"x"}}`:                       {byToken, "icontains is not a valid operator"},
		`{"OR":{"user_id":"x"}}`:                              {byToken, "filters.OR must be a list"},
		`{"metadata":"x"}`:                                    {byToken, "filters.metadata must be an object"},
		`{"created_at":{"gte":"yesterday"}}`:                  {byToken, "must be an RFC 3339 time or a date"},
		`{"AND":[{"agent_id":[]},{"updated_at":{"in":[1]}}]}`: {byToken, "filters.AND[0].agent_id must be a string that is not empty; filters.AND[1].updated_at.in is not"},
		`{"run_id":{"in":["a",1]}}`:                           {byToken, "filters.run_id.in[1] must be"},
		`{"NOT":{"created_at":1}}`:                            {byToken, "filters.NOT.created_at must be"},
		`{"user_id":"ann","metadata":{"user_id":"ben"}}`:      {byToken, "filters.metadata.user_id must be the filter user_id"},
		`{"metadata":{"app_id":"ben"}}`:                       {byToken, "filters.metadata.app_id must be the filter app_id"},
		`{"agent_id":{"eq":"*","ne":"*"}}`:                    {byToken, "filters.agent_id must not require both a value and its absence"},
		`{"NOT":{}}`:                                          {byToken, "filters.NOT must be an object with at least one condition"},
		`{"app_id":[]}`:                                       {byToken, "filters.app_id must be"},
		`{"metadata":{"a.runId":[]}}`:                         {byToken, "filters.metadata.a.runId must be"},
		`{"AND":[{"user_id":"u"},{"run_id":1}]}`:              {byKey, "filters.AND[1].run_id must be"},
		`{"user_id":"*"}`:                                     {byKey, "filters.user_id must select exactly one user"},
		`{"user_id":{"in":["a","b"]}}`:                        {byKey, "exactly one user"},
		`{"OR":[{"user_id":"a"},{"user_id":"b"}]}`:            {byKey, "exactly one user"},
		`{"user_id":"a","NOT":[{"user_id":"b"}]}`:             {byKey, "exactly one user"},
		`{"AND":[{"user_id":"a"},{"user_id":"b"}]}`:           {byKey, "exactly one user"},
		`{"AND":[{"user_id":"a"},{"NOT":"user_id"}]}`:         {byKey, "must be a list"},
	} {
		if _, err := selectBy(test.r, objectOf(t, in)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", in, err, test.want)
		}
	}
	if _, err := selectBy(byKey, objectOf(t, `{"user_id":"a"}`), objectOf(t, `{"user_id":"b"}`)); err == nil {
		t.Error("two users are accepted")
	}
}

func TestLargeFiltersAreNotParsed(t *testing.T) {
	t.Parallel()
	raw := strings.Repeat(`{"NOT":`, 9_900) + `{}` + strings.Repeat(`}`, 9_900)
	if _, err := parseObject("filters", json.RawMessage(raw)); err == nil || err.Error() != "filters must be at most 8192 bytes, not 79202" {
		t.Errorf("%v, want the limit of bytes", err)
	}
}
