// Package hack tests the scripts of this directory.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a Git repository whose first commit predates commits.sh and whose
// second adds it.
type repository struct{ dir string }

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t.TempDir()}
	r.git(t, "init", "--quiet")
	r.commit(t, "A subject from before the rule.")
	script, err := os.ReadFile("commits.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.dir, "hack"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "hack", "commits.sh"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(t, "add", "hack/commits.sh")
	r.commit(t, "Another one.")
	return r
}

func (r repository) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (r repository) commit(t *testing.T, subject string) {
	t.Helper()
	r.git(t, "commit", "--quiet", "--allow-empty", "--message", subject)
}

// check runs commits.sh and returns its output.
func (r repository) check(t *testing.T) (string, error) {
	t.Helper()
	cmd := exec.Command("hack/commits.sh")
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestCommitSubjects(t *testing.T) {
	t.Parallel()
	const summary = "controllers: "
	tests := map[string]struct{ subject, want string }{
		"good":                            {subject: "controllers: report usage as used and hard"},
		"two areas":                       {subject: "api,controllers: report usage"},
		"area with a path":                {subject: "internal/openai: replace the client"},
		"revert":                          {subject: `Revert "controllers: report usage"`},
		"72 characters":                   {subject: summary + strings.Repeat("é", 72-len(summary))},
		"73 characters":                   {subject: summary + strings.Repeat("é", 73-len(summary)), want: "longer than 72"},
		"no area":                         {subject: "report usage", want: "lower-case area"},
		"upper-case area":                 {subject: "Controllers: report usage", want: "lower-case area"},
		"no summary":                      {subject: "controllers:", want: "lower-case area"},
		"past tense":                      {subject: "controllers: added usage", want: "imperative"},
		"third person":                    {subject: "controllers: adds usage", want: "imperative"},
		"imperative that ends in s or ed": {subject: "controllers: embed usage"},
		"period":                          {subject: "controllers: report usage.", want: "period"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.commit(t, tt.subject)
			out, err := r.check(t)
			if (err != nil) != (tt.want != "") {
				t.Errorf("error %v, want one: %t", err, tt.want != "")
			}
			if !strings.Contains(out, tt.want) {
				t.Errorf("output %q, want it to contain %q", out, tt.want)
			}
		})
	}
}

func TestCommitSubjectsOfShallowClone(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(t, "controllers: report usage")
	r.commit(t, "Not a subject")
	clone := repository{t.TempDir()}
	r.git(t, "clone", "--quiet", "--depth", "2", "file://"+r.dir, clone.dir)
	out, err := clone.check(t)
	if err == nil {
		t.Error("the check of a bad subject passed")
	}
	if !strings.Contains(out, "Not a subject") {
		t.Errorf("output %q does not name the subject", out)
	}
}
