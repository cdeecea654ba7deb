package e2e_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cli runs bin/mnemo as a user and returns its output and exit code.
func cli(t *testing.T, url, token string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), mnemo, args...)
	cmd.Env = append(os.Environ(), "MNEMO_URL="+url, "MNEMO_TOKEN="+token)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ended:
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// succeeding returns a function that runs a command, which must succeed, and returns its output.
func succeeding(t *testing.T, url, token string) func(args ...string) string {
	t.Helper()
	return func(args ...string) string {
		t.Helper()
		out, errs, code := cli(t, url, token, args...)
		if code != 0 {
			t.Fatalf("mnemo %s: exit %d: %s%s", strings.Join(args, " "), code, out, errs)
		}
		return out
	}
}

const claudeExport = `[{"uuid":"11111111-1111-4111-8111-111111111111","name":"Glacier walk","created_at":"2026-02-01T10:00:00Z","updated_at":"2026-02-01T10:05:00Z",` +
	`"chat_messages":[{"uuid":"21111111-1111-4111-8111-111111111111","sender":"human","text":"What do I wear on a glacier?","created_at":"2026-02-01T10:00:00Z"},` +
	`{"uuid":"31111111-1111-4111-8111-111111111111","sender":"assistant","text":"Crampons and sun glasses.","created_at":"2026-02-01T10:00:10Z"}]}]`

// TestCommandLine runs the commands for users.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	applyTenant(t, "cli", "")
	url, token := platform.env["MNEMO_URL"], secret(t, "cli", "alice", "token")
	run := succeeding(t, url, token)
	remembered := run("remember", "2026-05-03 The spare key hangs in the shed.")
	if !strings.HasPrefix(remembered, "remembered as ") {
		t.Errorf("remember printed %q", remembered)
	}
	if out := run("remember", "2026-05-03 The spare key hangs in the shed."); out != "already "+remembered {
		t.Errorf("remember of the same text printed %q after %q", out, remembered)
	}
	if out := run("search", "how do I get in without a key"); !strings.HasPrefix(out, "2026-05-03 The spare key hangs in the shed.  (General, ") {
		t.Errorf("search printed %q", out)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "conversations.json")
	if err := os.WriteFile(file, []byte(claudeExport), 0o600); err != nil {
		t.Fatal(err)
	}
	var done struct {
		Status          string
		Total, Imported int
	}
	if err := json.Unmarshal([]byte(run("import", "--json", file)), &done); err != nil {
		t.Fatalf("import: %v", err)
	} else if done.Status != "done" {
		t.Errorf(`import: done.Status = %q, want "done"`, done.Status)
	} else if done.Total != 1 {
		t.Errorf("import: done.Total = %d, want 1", done.Total)
	} else if done.Imported != 1 {
		t.Errorf("import: done.Imported = %d, want 1", done.Imported)
	}
	if out := run("import", file); !strings.Contains(out, "1 conversations: 0 created, 0 updated, 1 unchanged") {
		t.Errorf("the second import printed %q", out)
	}
	if out := run("search", "--chats", "shoes for ice"); !strings.Contains(out, "Crampons") {
		t.Errorf("search of chats printed %q", out)
	}
	saved := filepath.Join(dir, "all.zip")
	run("export", saved)
	archive, err := zip.OpenReader(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) == 0 {
		t.Error("the export is empty")
	}
	for name, tc := range map[string]struct {
		url, token string
		args       []string
		code       int
		message    string
	}{
		"UnknownToken": {url, "mn_unknown", []string{"search", "x"}, 3, "set MNEMO_TOKEN"},
		"NoServer":     {"http://127.0.0.1:1", token, []string{"search", "x"}, 4, "cannot reach"},
		"BadAddress":   {"ftp://mnemo", token, []string{"search", "x"}, 1, "such as https://"},
		"NoToken":      {url, "", []string{"search", "x"}, 2, "set MNEMO_TOKEN"},
		"NothingToGet": {url, token, []string{"get", "nothing"}, 1, "no memory or conversation has the ID nothing"},
		"NoCommand":    {url, token, []string{"search"}, 2, "expected \"<query> ...\""},
		"NoBucket":     {url, token, []string{"search", "--bucket", "Nowhere", "x"}, 1, "existing buckets: General"},
		"FileIsThere":  {url, token, []string{"export", saved}, 1, "--force"},
		"NotAnExport":  {url, token, []string{"import", "cli_test.go"}, 1, ""},
	} {
		_, errs, code := cli(t, tc.url, tc.token, tc.args...)
		if code != tc.code {
			t.Errorf("%s: exit code %d, want %d", name, code, tc.code)
		}
		if errs == "" || !strings.Contains(errs, tc.message) {
			t.Errorf("%s: error output %q, want it to contain %q", name, errs, tc.message)
		}
	}
}

// TestCommandLineBrowses lists, reads and deletes what a user stored, with a stored
// login.
func TestCommandLineBrowses(t *testing.T) {
	t.Parallel()
	applyTenant(t, "browse", "")
	url, token := platform.env["MNEMO_URL"], secret(t, "browse", "alice", "token")
	home := t.TempDir()
	run := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), mnemo, args...)
		cmd.Env = []string{"XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash"}
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mnemo %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	_, address, _ := strings.Cut(url, "://") // on loopback, so http is the default
	if out := run(token+"\n", "login", address); !strings.HasPrefix(out, "logged in to "+url+";") {
		t.Errorf("login printed %q", out)
	}
	if info, err := os.Stat(filepath.Join(home, "mnemo", "login.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("stored login: %v, %v; want mode 0600", info, err)
	}
	run("", "remember", "2026-05-03 The spare key hangs in the shed.")
	run("", "remember", "2026-05-04 The shed has a new lock.")
	id := memoryID.FindStringSubmatch(run("", "list", "--count", "1"))
	if id == nil || id[1] != "2026-05-04 The shed has a new lock." {
		t.Fatalf("list printed %q, want the newest memory", id)
	}
	if out := run("", "get", id[2]); out != "2026-05-04 The shed has a new lock.\n" {
		t.Errorf("get of a memory printed %q", out)
	}
	run("", "import", writeFile(t, claudeExport))
	chat := memoryID.FindStringSubmatch(run("", "conversations", "--title", "glacier"))
	if chat == nil {
		t.Fatal("conversations printed no conversation")
	}
	if out := run("", "get", chat[2]); !strings.Contains(out, "assistant:\nCrampons and sun glasses.\n") {
		t.Errorf("get of a conversation printed %q", out)
	}
	if out := run("", "recall", "what to wear on a glacier"); !strings.Contains(out, "Crampons") {
		t.Errorf("recall printed %q", out)
	}
	if out := run("", "export"); !strings.HasPrefix(out, "PK") && !strings.Contains(out, "PK\x03\x04") {
		t.Errorf("a redirected export printed %.100q, want a zip file", out)
	}
	if out := run("", "delete", id[2], chat[2]); out != "deleted 2\n" {
		t.Errorf("delete printed %q", out)
	}
	if out := run("", "list"); strings.Contains(out, "new lock") || !strings.Contains(out, "spare key") {
		t.Errorf("list after the deletion printed %q", out)
	}
	if out := run("", "tokens", "create", "Laptop", "--scopes", "read", "--expires", "24h"); !regexp.MustCompile(`^mn_[0-9A-Za-z]{38}\n$`).MatchString(out) {
		t.Errorf("tokens create printed %q", out)
	}
	listed := memoryID.FindStringSubmatch(run("", "tokens", "list"))
	if listed == nil || listed[1] != "Laptop" || !strings.Contains(listed[0], "(read, never used, expires 2") {
		t.Fatalf("tokens list printed %q", listed)
	}
	if out := run("", "tokens", "revoke", listed[2]); out != "revoked 1\n" {
		t.Errorf("tokens revoke printed %q", out)
	}
	if out := run("", "tokens", "list"); out != "" {
		t.Errorf("tokens list after the revocation printed %q", out)
	}
	run("", "logout")
	if out := run("", "--version"); !strings.HasPrefix(out, "mnemo ") {
		t.Errorf("--version printed %q", out)
	}
	if out := run(""); !strings.Contains(out, "Usage: mnemo <command>") {
		t.Errorf("mnemo without arguments printed %q", out)
	}
	if out := run("", "completion", "--code", "bash"); !strings.Contains(out, "complete") {
		t.Errorf("completion printed %q", out)
	}
}

// TestCommandLinePages prints as many memories as requested, even if a response has fewer.
func TestCommandLinePages(t *testing.T) {
	t.Parallel()
	applyTenant(t, "pages", "  quota: {pageTokens: 30}\n")
	url, token := platform.env["MNEMO_URL"], secret(t, "pages", "alice", "token")
	run := succeeding(t, url, token)
	for i := range 8 {
		run("remember", fmt.Sprintf("2026-05-0%d The spare key of shed %d hangs in the hall.", i+1, i+1))
	}
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"List":      {[]string{"list", "--count", "7"}, 7},
		"Skip":      {[]string{"list", "--skip", "2"}, 6},
		"ListAll":   {[]string{"list", "--count", "2000"}, 8},
		"Search":    {[]string{"search", "--count", "7", "where are the spare keys of the sheds"}, 7},
		"SearchAll": {[]string{"search", "--count", "2000", "where are the spare keys of the sheds"}, 8},
	} {
		printed := memoryID.FindAllStringSubmatch(run(tc.args...), -1)
		ids := map[string]bool{}
		for _, line := range printed {
			ids[line[2]] = true
		}
		if len(printed) != tc.want || len(ids) != tc.want {
			t.Errorf("%s printed %d lines of %d memories, want %d", name, len(printed), len(ids), tc.want)
		}
		var list struct{ Memories []struct{ ID string } }
		if err := json.Unmarshal([]byte(run(append(tc.args, "--json")...)), &list); err != nil || len(list.Memories) != tc.want {
			t.Errorf("%s --json printed %d memories, %v, want %d", name, len(list.Memories), err, tc.want)
		}
	}
}

// memoryID matches a line of list or conversations: text, id.
var memoryID = regexp.MustCompile(`(?m)^(.*?)  .*?([^ (]+)\)$`)

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conversations.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
