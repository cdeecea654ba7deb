// Package changelog joins the fragments in docs/changelog, one for each change, into CHANGELOG.md.
package changelog

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// Dir contains the fragments, relative to the top of the checkout.
	Dir = "docs/changelog"
	// Unreleased stands for the date of a section that is not released yet.
	Unreleased = "unreleased"
)

// kinds are those of Keep a Changelog, in the order of their headings.
var kinds = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

// Fragments returns the fragments as the text of a section, which is empty if there are none, and their files.
func Fragments(root string) (text string, files []string, err error) {
	files, err = filepath.Glob(filepath.Join(root, Dir, "*.md"))
	if err != nil {
		return "", nil, fmt.Errorf("list fragments: %w", err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "README.md" })
	items := map[string]string{}
	for _, file := range files {
		kind, item, err := fragment(file)
		if err != nil {
			return "", nil, err
		}
		items[kind] += item
	}
	var lists []string
	for _, kind := range kinds {
		if items[kind] != "" {
			lists = append(lists, "### "+kind+"\n"+items[kind])
		}
	}
	return strings.Join(lists, "\n"), files, nil
}

// fragment returns the kind of a fragment and its list item.
func fragment(file string) (kind, item string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", fmt.Errorf("read fragment: %w", err)
	}
	kind, text, _ := strings.Cut(strings.TrimSpace(string(content)), ": ")
	if !slices.Contains(kinds, kind) || text == "" {
		return "", "", fmt.Errorf("%s: expected a text that begins with one of %s and a colon", file, strings.Join(kinds, ", "))
	}
	text = MapLinks(text, func(target string) string { return path.Join(Dir, target) })
	return kind, "- " + strings.ReplaceAll(text, "\n", "\n  ") + "\n", nil
}

// link matches the start of a Markdown link and its target.
var link = regexp.MustCompile(`\]\(([^)\s]+)`)

// MapLinks replaces the targets of relative links.
func MapLinks(text string, replace func(target string) string) string {
	return link.ReplaceAllStringFunc(text, func(match string) string {
		target := strings.TrimPrefix(match, "](")
		if strings.Contains(target, "://") {
			return match
		}
		return "](" + replace(target)
	})
}

// Section is a section of a changelog in the format of Keep a Changelog.
type Section struct{ Version, Date, Text string }

var title = regexp.MustCompile(`^\[([^\]]+)\] - (\S+)$`)

// Sections returns the sections of a changelog, newest first.
func Sections(changelog string) ([]Section, error) {
	var sections []Section
	_, parts, _ := strings.Cut(changelog, "\n## ")
	for part := range strings.SplitSeq(parts, "\n## ") {
		first, text, _ := strings.Cut(part, "\n")
		m := title.FindStringSubmatch(first)
		if m == nil {
			return nil, fmt.Errorf("CHANGELOG.md: section %q: expected a title such as ## [1.2.3] - 2026-12-01", first)
		}
		sections = append(sections, Section{Version: m[1], Date: m[2], Text: strings.TrimSpace(text)})
	}
	return sections, nil
}

// Release returns the changelog with a text in the dated section of a version, which is new or was unreleased.
func Release(changelog, version, date, text string) (string, error) {
	sections, err := Sections(changelog)
	if err != nil {
		return "", err
	}
	if sections[0].Date == Unreleased {
		text = strings.TrimSpace(sections[0].Text + "\n\n" + text)
		if sections[0].Version != version {
			return "", fmt.Errorf("CHANGELOG.md: section [%s] is unreleased: release it before %s", sections[0].Version, version)
		}
		sections = sections[1:]
	}
	if slices.ContainsFunc(sections, func(s Section) bool { return s.Version == version }) {
		return "", fmt.Errorf("CHANGELOG.md: section [%s] exists", version)
	}
	if text == "" {
		return "", errors.New(Dir + " has no fragments")
	}
	released, _, _ := strings.Cut(changelog, "\n## ")
	for _, s := range slices.Insert(sections, 0, Section{version, date, strings.TrimSpace(text)}) {
		released += fmt.Sprintf("\n## [%s] - %s\n\n%s\n", s.Version, s.Date, s.Text)
	}
	return released, nil
}
