package retrievalbench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longSet is a BEAM-format file without an id, with a message of two pieces and dates of single messages.
var longSet = `[{"sessions":[[{"id":0,"role":"user","text":"Hi","date":"2024-03-15"},
	{"id":1,"role":"assistant","text":"` + longText + `","date":"2024-03-17"},{"id":2,"role":"user","text":" "},{"id":3,"role":"user","text":"<b>"}]],
	"probes":[{"category":"contradiction_resolution","question":"?","sources":[0,1],"groups":{"first_statement":[0],"second_statement":[1]}},
	{"category":"knowledge_update","question":"?","sources":[0,3],"groups":{"original_info":[0],"updated_info":[3]}}]}]`

var (
	longText    = firstPiece + `\n\n` + secondPiece + ` `
	firstPiece  = strings.TrimSpace(strings.Repeat("one ", 150))
	secondPiece = strings.TrimSpace(strings.Repeat("two ", 100))
)

// The scripts in hack/ranking read these names.
func TestWriteUnits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, raw, want string }{
		"LoCoMo": {
			reason: "speakers precede their messages",
			raw:    locomoSet,
			want: `[{"id":"c","set":"locomo","convs":[{"messages":[{"id":"D1:1","role":"human","text":"Ann: Hi","time":"2023-05-08T13:56:00Z"},
				{"id":"D1:2","role":"assistant","text":"Bo: Yes","time":"2023-05-08T13:56:01Z"}]}],
				"units":[{"c":0,"m":0,"t":"Ann: Hi"},{"c":0,"m":1,"t":"Bo: Yes"}],"qs":[{"q":"Who?","cat":"single-hop","ev":["D1:1","D1:2"]}]}]`,
		},
		"BEAM": {
			reason: "an unanswerable question has an empty list of sources",
			raw:    beamSet,
			want: `[{"id":"b","set":"beam","convs":[{"messages":[{"id":"0","role":"human","text":"Hi","time":"2024-03-15T00:00:00Z"}]}],
				"units":[{"c":0,"m":0,"t":"Hi"}],"qs":[{"q":"?","cat":"abstention","ev":[]},
				{"q":"?","cat":"knowledge_update","ev":["0"],"groups":{"updated_info":["0"]}}]}]`,
		},
		"slash": {
			reason: "the id names files",
			raw:    strings.Replace(beamSet, `"id":"b"`, `"id":"a/b"`, 1),
			want: `[{"id":"a-b","set":"beam","convs":[{"messages":[{"id":"0","role":"human","text":"Hi","time":"2024-03-15T00:00:00Z"}]}],
				"units":[{"c":0,"m":0,"t":"Hi"}],"qs":[{"q":"?","cat":"abstention","ev":[]},
				{"q":"?","cat":"knowledge_update","ev":["0"],"groups":{"updated_info":["0"]}}]}]`,
		},
		"pieces and dates": {
			reason: "a long message has two units, and each message has its own date or the one before it",
			raw:    longSet,
			want: `[{"id":"set.json-0","set":"beam","convs":[{"messages":[{"id":"0","role":"human","text":"Hi","time":"2024-03-15T00:00:00Z"},
				{"id":"1","role":"assistant","text":"` + longText + `","time":"2024-03-17T00:00:01Z"},{"id":"3","role":"human","text":"<b>","time":"2024-03-17T00:00:03Z"}]}],
				"units":[{"c":0,"m":0,"t":"Hi"},{"c":0,"m":1,"t":"` + firstPiece + `"},{"c":0,"m":1,"t":"` + secondPiece + `"},{"c":0,"m":2,"t":"<b>"}],
				"qs":[{"q":"?","cat":"contradiction_resolution","ev":["0","1"],"groups":{"first_statement":["0"],"second_statement":["1"]}},
				{"q":"?","cat":"knowledge_update","ev":["0","3"],"groups":{"original_info":["0"],"updated_info":["3"]}}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := WriteUnits(&got, writeSet(t, tc.raw)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(decode(t, []byte(tc.want)), decode(t, got.Bytes())); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

func TestWriteUnitsOfSeveralFiles(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := WriteUnits(&got, writeSet(t, locomoSet), writeSet(t, beamSet)); err != nil {
		t.Fatal(err)
	}
	var histories []units
	if err := json.Unmarshal(got.Bytes(), &histories); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range histories {
		ids = append(ids, h.ID)
	}
	if d := cmp.Diff([]string{"c", "b"}, ids); d != "" {
		t.Errorf("histories: -want +got\n%s", d)
	}
}

func TestWriteUnitsRefuses(t *testing.T) {
	t.Parallel()
	set := writeSet(t, beamSet)
	for name, tc := range map[string]struct {
		paths []string
		want  string
	}{
		"the same history twice": {[]string{set, set}, "set.json, item 0: another history has the id b"},
		"an unknown role":        {[]string{writeSet(t, strings.Replace(beamSet, `"user"`, `"pope"`, 1))}, `set.json, item 0: message 0 has the unknown role "pope"`},
		"no date":                {[]string{writeSet(t, strings.Replace(beamSet, "2024-03-15", "", 1))}, "parse the date of message 0"},
		"a missing file":         {[]string{filepath.Join(t.TempDir(), "none.json")}, "read dataset"},
	} {
		err := WriteUnits(&bytes.Buffer{}, tc.paths...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func writeSet(t *testing.T, raw string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.json")
	if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func decode(t *testing.T, raw []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
