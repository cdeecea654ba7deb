package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/changelog"
)

// writeNotes writes the release notes from the changelog and its fragments.
func (r *release) writeNotes() error {
	text, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("read changelog: %w", err)
	}
	fragments, _, err := changelog.Fragments(r.Root)
	if err != nil {
		return err
	}
	sections, err := changelog.Sections(string(text))
	if err != nil {
		return err
	}
	notes, err := releaseNotes(sections, fragments, r.Version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path("notes.md"), []byte(absoluteLinks(notes, r.Version)), 0o644); err != nil {
		return fmt.Errorf("write release notes: %w", err)
	}
	return nil
}

// releaseNotes returns the notes of a version. A pre-release has those of the
// unreleased changes. For a release, `make changelog` must have moved these to a
// section with its version and date.
func releaseNotes(sections []changelog.Section, fragments, version string) (string, error) {
	if strings.Contains(version, "-") {
		if len(sections) > 0 && sections[0].Date == changelog.Unreleased {
			fragments = strings.TrimSpace(sections[0].Text + "\n\n" + fragments)
		}
		if fragments == "" {
			return "", errors.New("CHANGELOG.md has no unreleased section, and " + changelog.Dir + " no fragments")
		}
		return strings.TrimSpace(fragments) + "\n", nil
	}
	i := slices.IndexFunc(sections, func(s changelog.Section) bool { return s.Version == version })
	if fragments != "" || i < 0 || sections[i].Date == changelog.Unreleased || sections[i].Text == "" {
		return "", fmt.Errorf("CHANGELOG.md: run `make changelog VERSION=%s`, and commit the section of the version", version)
	}
	return sections[i].Text + "\n", nil
}

// absoluteLinks replaces links that are relative to the changelog by links to the files of
// the release, because its page is elsewhere.
func absoluteLinks(notes, version string) string {
	return changelog.MapLinks(notes, func(target string) string {
		return "https://github.com/mnemo-dev/mnemo/blob/v" + version + "/" + target
	})
}
