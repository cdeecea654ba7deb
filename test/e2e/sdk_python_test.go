package e2e_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

// packagesVersion is the version of the packages in tests.
const packagesVersion = "1.2.3-rc.1"

// TestPythonSDK builds the wheel, installs it into new virtual environments, and runs
// the tests of the package and the documented examples with it.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	tools := openSDKTools(t)
	packages := openSDKPackages(t)
	wheel := buildWheel(t, tools)
	applyTenant(t, "python", "  quota: {pageTokens: 100}\n  applications: [{name: shop, scopes: [read, write]}]\n")
	env := []string{"MNEMO_URL=" + platform.env["MNEMO_URL"], "MNEMO_API_KEY=" + secret(t, "python", "alice", "token"),
		"MNEMO_APPLICATION_KEY=" + applicationKey(t, "python", "shop")}

	t.Run("Client", func(t *testing.T) {
		t.Parallel()
		v := newVenv(t, "")
		v.installDocumented(t, packages, wheel)
		v.test(t, env, 34, "test_*.py")
	})
	t.Run("Adapters", func(t *testing.T) {
		t.Parallel()
		v := newVenv(t, packages.Python())
		// The other packages are present, so that this also compares their versions with those in pyproject.toml.
		v.install(t, packages, wheel+"[langgraph,openai-agents,anthropic,llama-index]")
		v.test(t, env, 29, "adapter_*.py")
		for i, block := range snippets(t, "python.md", "python") {
			cmd := exec.CommandContext(t.Context(), v.python, "-")
			cmd.Stdin = strings.NewReader(block)
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
			writeExport(t, cmd.Dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("block %d of python.md: %v\n%s\n%s", i+1, err, block, out)
			}
		}
		types := tools.Python(t.Context(), "-m", "mypy", "--python-executable", v.python, "--cache-dir", t.TempDir(), "--strict", "-p", "mnemo")
		types.Dir = t.TempDir()
		if out, err := types.CombinedOutput(); err != nil {
			t.Errorf("mypy: %v\n%s", err, out)
		}
	})
}

// applicationKey returns the key of an application.
func applicationKey(t *testing.T, tenant, application string) string {
	t.Helper()
	raw := kubectl(t, "", "get", "secret", tenant+"-"+application+"-key", "-o", "jsonpath={.data.token}")
	value, err := base64.StdEncoding.DecodeString(raw)
	if err != nil || len(value) == 0 {
		t.Fatalf("decode key: %q, %v", raw, err)
	}
	secrets.Add("key of "+tenant+"/"+application, string(value))
	return string(value)
}

func openSDKTools(t *testing.T) devenv.SDKTools {
	t.Helper()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := devenv.OpenSDKTools(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func openSDKPackages(t *testing.T) devenv.SDKPackages {
	t.Helper()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := devenv.OpenSDKPackages(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// buildWheel builds the wheel twice and compares the files.
func buildWheel(t *testing.T, tools devenv.SDKTools) string {
	t.Helper()
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		if err := sdk.BuildPython(t.Context(), tools, absolute("../.."), packagesVersion, dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mnemo_client-1.2.3rc1-py3-none-any.whl", "mnemo_client-1.2.3rc1.tar.gz"} {
		if !bytes.Equal(readFile(t, filepath.Join(dirs[0], name)), readFile(t, filepath.Join(dirs[1], name))) {
			t.Errorf("two builds of %s differ", name)
		}
	}
	return filepath.Join(dirs[0], "mnemo_client-1.2.3rc1-py3-none-any.whl")
}

// venv is a virtual environment without pip.
type venv struct{ python string }

// newVenv creates a virtual environment that also finds the packages in site, if any.
func newVenv(t *testing.T, site string) venv {
	t.Helper()
	dir := t.TempDir()
	output(t, exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip", dir))
	v := venv{filepath.Join(dir, "bin", "python")}
	if site != "" {
		purelib := output(t, exec.CommandContext(t.Context(), v.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
		if err := os.WriteFile(filepath.Join(purelib, "site.pth"), []byte(site+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// install installs a package with its dependencies from the cached wheels.
func (v venv) install(t *testing.T, packages devenv.SDKPackages, name string) {
	t.Helper()
	output(t, exec.CommandContext(t.Context(), "python3", "-m", "pip", "--python", v.python, "install", "--quiet",
		"--no-index", "--find-links", packages.Wheels(), name))
}

// installDocumented executes the documented commands with the cached wheels and the built
// one instead of the package index.
func (v venv) installDocumented(t *testing.T, packages devenv.SDKPackages, wheel string) {
	t.Helper()
	for _, block := range snippets(t, "python.md", "sh") {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", "pip() { python3 -m pip --python "+v.python+` "$@"; }`+"\n"+block)
		cmd.Env = append(os.Environ(), "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+packages.Wheels()+" "+filepath.Dir(wheel))
		output(t, cmd)
	}
}

var testsRun = regexp.MustCompile(`Ran (\d+) tests? in`)

// test runs at least the given number of tests of the package.
func (v venv) test(t *testing.T, env []string, least int, pattern string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), v.python, "-m", "unittest", "discover", "--start-directory", absolute("../../sdk/python/tests"), "--pattern", pattern)
	cmd.Dir, cmd.Env = t.TempDir(), append(append(os.Environ(), env...), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", pattern, err, out)
	}
	found := testsRun.FindSubmatch(out)
	if found == nil || atoi(t, string(found[1])) < least {
		t.Errorf("%s: fewer than %d tests ran\n%s", pattern, least, out)
	}
}
