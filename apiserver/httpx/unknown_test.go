package httpx

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// opaque is a type that decodes itself.
type opaque struct{ given string }

func (o *opaque) UnmarshalJSON(data []byte) error {
	o.given = string(data)
	return nil
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	type message struct {
		Role string `json:"role"`
	}
	type body struct {
		Text     string            `json:"text"`
		BucketID *opaque           `json:"bucketId"`
		Messages []message         `json:"messages"`
		Labels   map[string]string `json:"labels"`
	}
	for data, want := range map[string][]string{
		`{"text":"a","bucketid":1,"labels":{"x":"y"}}`:                           {"bucketid"},
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
