package httpx

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// Names that encoding/json matches although they differ are unknown, so they are ignored.
func TestMemberNamesAreExact(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"USER_ID", "User_id", "u\u017fer_id", "user_id ", "userid", `\u0055ser_id`} {
		var v struct {
			User string `json:"user_id"`
			List []struct {
				User string `json:"user_id"`
			} `json:"list"`
		}
		body := `{"user_id":"me","` + name + `":"victim","list":[{"user_id":"me","` + name + `":"victim"}]}`
		if err := DecodeJSON([]byte(body), &v); err != nil || v.User != "me" || v.List[0].User != "me" {
			t.Errorf("%s: %v, %v", body, v, err)
		}
	}
}

func TestRepeatedMembersAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"user_id":"me","user_id":"victim"}`:           "user_id must not occur twice",
		`{"user_id":"me","\u0075ser_id":"victim"}`:      "user_id must not occur twice",
		`{"list":[{},{"a":{"b":1,"c":2,"b":3}}]}`:       "list[1].a.b must not occur twice",
		`{"unknown":{"list":[[{"a":1,"a":1}]]}}`:        "unknown.list[0][0].a must not occur twice",
		`{"raw":{"0":{"x":null,"x":null}},"list":null}`: "raw.0.x must not occur twice",
		`{"object":{"x":{"y":1,"y":1}}}`:                "object.x.y must not occur twice",
	} {
		var v struct {
			User   string           `json:"user_id"`
			List   []map[string]any `json:"list"`
			Raw    json.RawMessage  `json:"raw"`
			Object *Object          `json:"object"`
		}
		if err := DecodeJSON([]byte(body), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

func TestNumberOutOfRange(t *testing.T) {
	t.Parallel()
	var v struct {
		Score float64 `json:"score"`
		Limit int64   `json:"limit"`
	}
	for body, want := range map[string]string{
		`{"score":1e400}`: "score is out of range",
		`{"score":"x"}`:   "score must be a number, not a string",
		`{"limit":1.5}`:   "limit must be an integer, not a number",
		`1e400`:           "the body must be an object, not a number",
	} {
		if err := DecodeJSON([]byte(body), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

func TestNullsInLists(t *testing.T) {
	t.Parallel()
	type inner struct {
		Names []string `json:"names"`
	}
	for body, want := range map[string]string{
		`null`:                                         "",
		`{"names":null,"list":null}`:                   "",
		`{"names":["null","a\"null"]}`:                 "",
		`{"other":[null,{"names":[null]}]}`:            "",
		`{"names":[null]}`:                             "names[0] must be a string, not null",
		`{"NAMES":["a",null]}`:                         "", // unknown
		`{"list":[{"names":[]},{"names":["]",null]}]}`: "list[1].names[1] must be a string, not null",
		`{"other":{"list":[[]]},"list":[{}, null]}`:    "list[1] must be an object, not null",
		`{"list":[{"other":[null],"names":["a"]}]}`:    "",
	} {
		var v struct {
			Names []string `json:"names"`
			List  []*inner `json:"list"`
		}
		err := DecodeJSON([]byte(body), &v)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// Not parallel: it counts allocations.
func TestNullCheckDoesNotAllocate(t *testing.T) {
	body := []byte(`{"memoryIds":["a"],"x":[` + strings.Repeat(`{"a":null},`, 100_000) + `{}]}`)
	var v struct {
		IDs []string `json:"memoryIds"`
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := rejectNulls(body, &v)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; err != nil || got > uint64(len(body))/10 {
		t.Errorf("%d bytes allocated for a body of %d, %v", got, len(body), err)
	}
}
