package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestNormalizeAttributes(t *testing.T) {
	t.Parallel()
	in := Attributes{AgentID: "a", RunID: "r", Tags: []string{"b", "ä", "b"}, Metadata: []byte(`{ "z": [1e2, {"<": null}], "a": "é", "n": -1.50E-1 }`)}
	var f fault.Fields
	got := in.Normalize(&f)
	want := Attributes{AgentID: "a", RunID: "r", Tags: []string{"b", "ä"}, Metadata: []byte(`{"a":"é","n":-0.150,"z":[100,{"<":null}]}`)}
	if diff := cmp.Diff(want, got); diff != "" || f.Err() != nil {
		t.Errorf("Normalize (-want +got):\n%s%v", diff, f.Err())
	}
	if again := got.Normalize(&f); !again.Equal(got) {
		t.Errorf("Normalize again = %+v", again)
	}
	if n, want := got.Size(), 1+1+1+2+len(want.Metadata); n != want {
		t.Errorf("Size = %d, want %d", n, want)
	}
	for _, none := range []string{``, `null`, `{}`, ` { } `} {
		if a := (Attributes{Metadata: []byte(none), Tags: []string{}}).Normalize(&f); !a.Equal(Attributes{}) || a.Metadata != nil {
			t.Errorf("Normalize of metadata %q = %+v, want none", none, a)
		}
	}
}

func TestInvalidAttributes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   Attributes
		want string
	}{
		"long agent":        {Attributes{AgentID: strings.Repeat("a", 257)}, "agent id must be at most 256 bytes, not 257"},
		"NUL in run":        {Attributes{RunID: "a\x00"}, "run id must not contain the character U+0000"},
		"too many tags":     {Attributes{Tags: make([]string, 33)}, "tags must contain at most 32 tags, not 33"},
		"blank tag":         {Attributes{Tags: []string{" "}}, "tags[0] must be 1 to 64 characters and not blank"},
		"long tag":          {Attributes{Tags: []string{"b", strings.Repeat("ä", 65), ""}}, "tags[1] must be 1 to 64 characters and not blank; tags[2] must be"},
		"NUL in tag":        {Attributes{Tags: []string{"a", "a\x00"}}, "tags[1] must not contain the character U+0000"},
		"no object":         {Attributes{Metadata: []byte(`[1]`)}, "metadata must be a JSON object"},
		"two objects":       {Attributes{Metadata: []byte(`{"a":1}{"b":2}`)}, "metadata must be a JSON object"},
		"invalid UTF-8":     {Attributes{Metadata: []byte("{\"a\":\"\xff\"}")}, "metadata must be a JSON object"},
		"large":             {Attributes{Metadata: []byte(`{"a":"` + strings.Repeat("x", 4096) + `"}`)}, "metadata must be at most 4096 bytes of JSON, not 4104"},
		"large by exponent": {Attributes{Metadata: []byte(`{"a":[1` + strings.Repeat(",1e30", 200) + `]}`)}, "metadata must be at most 4096 bytes of JSON"},
		"very large":        {Attributes{Metadata: []byte(`{` + strings.Repeat(" ", 70000) + `}`)}, "metadata must be at most 4096 bytes of JSON"},
		"empty key":         {Attributes{Metadata: []byte(`{"":1}`)}, "metadata must not have an empty key"},
		"long key":          {Attributes{Metadata: []byte(`{"` + strings.Repeat("k", 129) + `":1}`)}, "metadata." + strings.Repeat("k", 64) + "… must have a key of at most 128 bytes"},
		"NUL in a string":   {Attributes{Metadata: []byte(`{"z":"\u0000","a":[1,{"b":"\u0000"}]}`)}, "metadata.a[1].b must not contain the character U+0000"},
		"NUL in a key":      {Attributes{Metadata: []byte(`{"a":{"\u0000":1}}`)}, "metadata.a must not have a key that contains the character U+0000"},
		"large exponent":    {Attributes{Metadata: []byte(`{"a":1e400}`)}, "metadata.a must be a number of at most 40 characters"},
		"deep":              {Attributes{Metadata: []byte(`{"a":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`)}, "metadata.a[0][0][0][0][0][0][0] must not be nested more than 8 levels"},
	} {
		var f fault.Fields
		test.in.Normalize(&f)
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
