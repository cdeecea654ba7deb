package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	podLogs = regexp.MustCompile(`kubectl (?:(?:-n|--namespace)[ =]\S+ )?logs\b[^\n|` + "`" + `]*`)
	byLabel = regexp.MustCompile(`\s(-l|--selector)[ =]`)
	grepped = regexp.MustCompile(`grep "([^"]+)"`)
	sql     = regexp.MustCompile("(?i)(`|\n *)(select|alter|update|delete from|insert into) ")
)

// TestLogCommandsSetTail checks the commands of all documents and of the chart's notes:
// with a label selector, kubectl prints only the last ten lines unless --tail is set.
func TestLogCommandsSetTail(t *testing.T) {
	t.Parallel()
	var commands int
	for _, file := range append(markdownFiles(t), filepath.Join(root, "charts/mnemo/templates/NOTES.txt")) {
		for _, command := range podLogs.FindAllString(read(t, file), -1) {
			commands++
			if byLabel.MatchString(command) && !strings.Contains(command, "--tail=") {
				t.Errorf("%s: %s has a label selector and no --tail", file, command)
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d commands that print logs, want at least those of the runbooks", commands)
	}
}

// TestGreppedMessagesExist checks that a message that a document searches for in logs is one of the product.
func TestGreppedMessagesExist(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	for section := range strings.SplitSeq(read(t, filepath.Join(root, "test/texts/testdata/texts.golden")), "\n## ") {
		if kind, _, _ := strings.Cut(section, "\n"); kind == "log message" || kind == "message" || kind == "error" {
			logged.WriteString(section)
		}
	}
	var messages int
	for _, file := range markdownFiles(t) {
		for _, match := range grepped.FindAllStringSubmatch(read(t, file), -1) {
			messages++
			if !strings.Contains(logged.String(), match[1]) {
				t.Errorf("%s searches for %q, which no log message or error contains", file, match[1])
			}
		}
	}
	if messages < 5 {
		t.Errorf("%d messages, want at least those of the runbooks", messages)
	}
}

// TestRunbooks checks the sections of the runbooks, and that one with SQL says where to
// run it.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("runbooks: %v, %v", files, err)
	}
	var withSQL int
	for _, file := range files {
		text := read(t, file)
		var at int
		for _, heading := range []string{"\n## Symptom\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n"} {
			next := strings.Index(text[at:], heading)
			if next < 0 {
				t.Errorf("%s: no section %q after the previous one", file, strings.TrimSpace(heading))
				break
			}
			at += next
		}
		if sql.MatchString(text) {
			withSQL++
			if !strings.Contains(text, "](../operations.md#run-sql)") {
				t.Errorf("%s contains SQL and does not say where to run it", file)
			}
		}
	}
	if withSQL < 3 {
		t.Errorf("found SQL in %d runbooks, want at least 3", withSQL)
	}
	if !strings.Contains(read(t, "operations.md"), "\n## Run SQL\n") {
		t.Error("operations.md has no section Run SQL")
	}
}
