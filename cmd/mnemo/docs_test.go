package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// docs/cli.md lists every command and no other, and every exit code.
func TestDocumentListsEveryCommand(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, modelVars(), importVars())
	if err != nil {
		t.Fatal(err)
	}
	var commands, documented []string
	for _, leaf := range parser.Model.Leaves(true) {
		path, _, _ := strings.Cut(leaf.Path(), " <")
		commands = append(commands, "mnemo "+path)
	}
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(mnemo [a-z -]+)` \\|").FindAllSubmatch(text, -1) {
		documented = append(documented, string(row[1]))
	}
	slices.Sort(commands)
	slices.Sort(documented)
	if diff := cmp.Diff(commands, documented); diff != "" {
		t.Errorf("commands and docs/cli.md (-commands +docs):\n%s", diff)
	}
	for _, code := range []int{0, exitFailed, exitUsage, exitToken, exitBusy, exitPartial} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/cli.md does not explain exit code %d", code)
		}
	}
}
