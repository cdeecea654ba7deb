package texts

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const golden = "testdata/texts.golden"

func TestTextsMatchTheGoldenFile(t *testing.T) {
	t.Parallel()
	texts, err := Collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	got := texts.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("texts changed; review them and run go test ./test/texts -update (-want +got):\n%s", diff)
	}
}

// avoided are phrases that no text may contain.
var avoided = regexp.MustCompile(`(?i)\b(by itself|by themselves|for keeps|goes on|let in|lets in|let go of|mend|mended|is away|are away|was away|` +
	`takes a|takes an|takes one|is told|whoever|waits? for room|waiting for room|is there is nothing|is used up|are used up|` +
	`by somebody else|tried again|look again|what there is|left out|misspelt|whereabouts|makes? of)\b`)

// allowed are texts in which an avoided phrase is right.
var allowed = []string{}

func TestTextsAvoidUnidiomaticPhrases(t *testing.T) {
	t.Parallel()
	texts, err := Collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(texts.String()) {
		phrase := avoided.FindString(line)
		if phrase == "" || containsAny(line, allowed) {
			continue
		}
		t.Errorf("%q in %s", phrase, strings.TrimSpace(line))
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func TestPageTexts(t *testing.T) {
	t.Parallel()
	texts := &Texts{byKind: map[string]map[string]bool{}}
	const template = `{{define "main"}}<h2 id="x">{{plural .N "memory"}} {{if eq .N 1}}isn’t{{else}}aren’t{{end}} <b>searchable</b></h2>` +
		`<input aria-label="Search {{.Name}}"><pre>code</pre>` +
		"<p title=\"{{t \"Hint\"}}\">{{t \"Created %s\" (ago .At)}}</p><p>{{tHTML `<a href=\"/x\">Read</a> more.`}}</p>{{end}}"
	if err := page(texts, "page", "a.html", []byte(template)); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]bool{"page": {
		"a.html: {…} isn’t / aren’t searchable": true,
		"a.html: Search {…}":                    true,
		"a.html: Hint":                          true,
		"a.html: Created %s":                    true,
		"a.html: Read more.":                    true,
	}}
	if diff := cmp.Diff(want, texts.byKind); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}
