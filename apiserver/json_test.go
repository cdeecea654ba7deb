package apiserver

import (
	"runtime"
	"strings"
	"testing"
)

// The largest body, with as many members as possible.
func TestWholeNumbersAreReadOnce(t *testing.T) {
	t.Parallel()
	body := `{"query":"x"` + strings.Repeat(`,"limit":1.0`, 80_000) + `}`
	var in searchInput
	if err := decodeJSON([]byte(body), &in.Body); err != nil || *in.Body.Limit != 1 {
		t.Errorf("limit %v, %v", in.Body.Limit, err)
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
		if err := decodeJSON([]byte(body), &v); err == nil || err.Error() != want {
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
		`{"NAMES":["a",null]}`:                         "NAMES[1] must be a string, not null",
		`{"list":[{"names":[]},{"names":["]",null]}]}`: "list[1].names[1] must be a string, not null",
		`{"other":{"list":[[]]},"list":[{}, null]}`:    "list[1] must be an object, not null",
		`{"list":[{"other":[null],"names":["a"]}]}`:    "",
	} {
		var v struct {
			Names []string `json:"names"`
			List  []*inner `json:"list"`
		}
		err := decodeJSON([]byte(body), &v)
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
