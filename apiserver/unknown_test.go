package apiserver

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	type message struct {
		Role string `json:"role"`
	}
	type body struct {
		Text     string            `json:"text"`
		BucketID *bucketID         `json:"bucketId"`
		Messages []message         `json:"messages"`
		Labels   map[string]string `json:"labels"`
	}
	for data, want := range map[string][]string{
		`{"text":"a","bucketid":1,"labels":{"x":"y"}}`:                           nil, // names match regardless of case
		`{"txt":"a","bucketId":{"of":1},"text":"\"x\":1"}`:                       {"txt"},
		`{"messages":[{"role":"a","naam":1},{"naam":2,"role":"b"}],"skip":[{}]}`: {"messages[].naam", "skip"},
		`{"text":"a","tru`:                      nil, // the beginning of a larger body
		`{"text":"a","x":{"y"`:                  {"x"},
		`[{"x":1}]`:                             nil,
		`{"` + strings.Repeat("é", 80) + `":1}`: {strings.Repeat("é", 50) + "..."},
	} {
		if got := unknownFields([]byte(data), reflect.TypeFor[body]()); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
	if got := unknownFields([]byte("{"+strings.Repeat(`"a":1,"b":[{}],`, 4000)), reflect.TypeFor[body]()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("repeated fields are named %q", got)
	}
}

// A misspelled field is named, whether the request succeeds or not.
func TestWarningNamesUnknownFields(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for body, want := range map[string][]string{
		`{"text":"2026-05-03 Likes tea","bucketID":1}`:                 nil,
		`{"text":"2026-05-03 Likes tea","bucket":"x","caf\u00e9\n":1}`: {`299 - "unknown field bucket"`, `299 - "unknown field caf\u00e9\n"`},
		`{"txt":"2026-05-03 Likes tea"}`:                               {`299 - "unknown field txt"`},
	} {
		got := h.call(t, h.alice, "POST", "/api/memory", body)
		if warnings := got.header.Values("Warning"); !slices.Equal(warnings, want) {
			t.Errorf("%s: status %d, warnings %q, want %q", body, got.status, warnings, want)
		}
	}
}
