package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// executed names the test that executes all blocks of a language in a file of docs/connect.
var executed = map[string]string{
	"README.md json":      "TestConnectSettings",
	"README.md sh":        "TestConnectShellBlocks", // and those below it
	"README.md toml":      "TestConnectCodex",
	"README.md yaml":      "TestConnectLibreChat",
	"mem0.md js":          "TestMem0Packages",
	"mem0.md python":      "TestMem0Packages",
	"mem0.md sh":          "TestMem0Packages",
	"python.md python":    "TestPythonSDK",
	"python.md sh":        "TestPythonSDK",
	"typescript.md sh":    "TestTypeScriptSDK",
	"typescript.md ts":    "TestTypeScriptSDK",
	"action.py":           "TestConnectAction",
	"function_calling.py": "TestConnectFunctionCalling",
	"openwebui_filter.py": "TestPythonSDK",
}

var fence = regexp.MustCompile("(?m)^```(.*)$")

// Every block and every file of docs/connect is executed by a test: add the test to
// executed.
func TestConnectIsExecuted(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	files, err := filepath.Glob("connect/*")
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for what, test := range executed {
		unused[what] = true
		if !tests[test] {
			t.Errorf("%s: %s does not exist", what, test)
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		parts := []string{name}
		if strings.HasSuffix(name, ".md") {
			parts = nil
			for i, m := range fence.FindAllStringSubmatch(read(t, file), -1) {
				if i%2 == 0 {
					parts = append(parts, name+" "+m[1])
				}
			}
		}
		for _, part := range parts {
			delete(unused, part)
			if executed[part] == "" {
				t.Errorf("no test executes %q of docs/connect", part)
			}
		}
	}
	for what := range unused {
		t.Errorf("docs/connect has no %q", what)
	}
}
