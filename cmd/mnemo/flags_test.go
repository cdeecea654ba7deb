package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

// otherSettings are flags of kubectl and curl, and the prefixes of flags that a text completes.
var otherSettings = []string{"--type", "--for", "--data-urlencode", "--default-quota", "--max-quota"}

// TestTextsNameExistingSettings compares the flags and environment variables in all
// texts with those of the commands.
func TestTextsNameExistingSettings(t *testing.T) {
	parser, err := kong.New(&cli{}, modelVars(), importVars())
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]bool{}
	var collect func(*kong.Node)
	collect = func(n *kong.Node) {
		for _, flag := range n.Flags {
			settings["--"+flag.Name] = true
			for _, env := range flag.Envs {
				settings[env] = true
			}
		}
		for _, child := range n.Children {
			collect(child)
		}
	}
	collect(parser.Model.Node)
	texts, err := os.ReadFile("../../test/texts/testdata/texts.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]+[a-z]|\bMNEMO_[A-Z_]+[A-Z]\b`).FindAllString(string(texts), -1) {
		if !settings[name] && !slices.Contains(otherSettings, name) {
			t.Errorf("a text names %s, which is no flag or variable of any command", name)
		}
	}
}
