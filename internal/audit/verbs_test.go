package audit

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The list has every verb that is declared.
func TestVerbsAreComplete(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("record.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []Verb
	for _, v := range regexp.MustCompile(`Verb = "([a-z.]+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, Verb(v[1]))
	}
	if diff := cmp.Diff(declared, Verbs); diff != "" {
		t.Errorf("verbs (-declared +listed):\n%s", diff)
	}
}
