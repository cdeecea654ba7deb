package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// unreleased is the title of the changelog section of the next release.
const unreleased = "Unreleased"

// writeNotes writes the release notes from the changelog.
func (r *release) writeNotes() error {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("read changelog: %w", err)
	}
	notes, err := releaseNotes(string(changelog), r.Version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path("notes.md"), []byte(absoluteLinks(notes, r.Version)), 0o644); err != nil {
		return fmt.Errorf("write release notes: %w", err)
	}
	return nil
}

// releaseNotes returns the changelog section of a version. A pre-release has the
// notes of the unreleased changes. For a release, those must have been moved to a
// section with its version and date.
func releaseNotes(changelog, version string) (string, error) {
	sections := changelogSections(changelog)
	if strings.Contains(version, "-") {
		if sections[unreleased] == "" {
			return "", fmt.Errorf("CHANGELOG.md: section [%s] is missing or empty", unreleased)
		}
		return sections[unreleased], nil
	}
	if sections[unreleased] != "" {
		return "", fmt.Errorf("CHANGELOG.md: move the changes from [%s] to a section ## [%s] - YYYY-MM-DD", unreleased, version)
	}
	if sections[version] == "" {
		return "", fmt.Errorf("CHANGELOG.md: section [%s] is missing or empty", version)
	}
	return sections[version], nil
}

// link matches the start of a Markdown link and its target.
var link = regexp.MustCompile(`\]\(([^)\s]+)`)

// absoluteLinks replaces links that are relative to the changelog by links to the files of
// the release, because its page is elsewhere.
func absoluteLinks(notes, version string) string {
	return link.ReplaceAllStringFunc(notes, func(match string) string {
		target := strings.TrimPrefix(match, "](")
		if strings.Contains(target, "://") {
			return match
		}
		return "](https://github.com/mnemo-dev/mnemo/blob/v" + version + "/" + target
	})
}

// changelogSections returns the sections of a changelog in the format of Keep a
// Changelog, by version.
func changelogSections(changelog string) map[string]string {
	sections := map[string]string{}
	for section := range strings.SplitSeq("\n"+changelog, "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if version, _, ok := strings.Cut(strings.TrimPrefix(title, "["), "]"); ok {
			if body = strings.TrimSpace(body); body != "" {
				sections[version] = body + "\n"
			}
		}
	}
	return sections
}
