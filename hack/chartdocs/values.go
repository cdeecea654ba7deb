package main

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// section is a top-level map of values, or a group of top-level values.
type section struct {
	names       []string
	description string
	values      []value
}

// value is a row of the reference.
type value struct{ path, fallback, description string }

// readSections reads values.yaml. Each top-level map in block style is a section;
// the values between two of them form one together.
func readSections(raw []byte) ([]section, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("must be a map")
	}
	var sections []section
	general := true // the last section is one of top-level values
	err := eachKey(root.Content[0], func(key, node *yaml.Node) error {
		if isMap(node) {
			s := section{names: []string{key.Value}, description: comment(key, node)}
			if err := s.addMap(key.Value, node); err != nil {
				return err
			}
			sections, general = append(sections, s), false
			return nil
		}
		if len(sections) == 0 || !general {
			sections, general = append(sections, section{}), true
		}
		s := &sections[len(sections)-1]
		s.names = append(s.names, key.Value)
		return s.add(key.Value, key, node)
	})
	return sections, err
}

func (s *section) addMap(path string, node *yaml.Node) error {
	return eachKey(node, func(key, child *yaml.Node) error {
		full := path + "." + key.Value
		if !isMap(child) {
			return s.add(full, key, child)
		}
		if d := comment(key, child); d != "" {
			s.values = append(s.values, value{path: full, description: d})
		}
		return s.addMap(full, child)
	})
}

func (s *section) add(path string, key, node *yaml.Node) error {
	fallback, err := flow(node)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.values = append(s.values, value{path: path, fallback: fallback, description: comment(key, node)})
	return nil
}

// isMap reports whether a node is a map with a line for each key.
func isMap(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle == 0 && len(node.Content) > 0
}

func eachKey(node *yaml.Node, f func(key, value *yaml.Node) error) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if err := f(node.Content[i], node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// comment returns the comments above and beside a key as one paragraph.
func comment(key, node *yaml.Node) string {
	var words []string
	for _, c := range []string{key.HeadComment, key.LineComment, node.LineComment, key.FootComment} {
		// Comments separated by an empty line, or beside another key, are not the key's.
		if i := strings.LastIndex(c, "\n\n"); i >= 0 {
			c = c[i:]
		}
		for line := range strings.SplitSeq(c, "\n") {
			words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
		}
	}
	return strings.Join(words, " ")
}

// flow returns a value in YAML on one line, without comments.
func flow(node *yaml.Node) (string, error) {
	bare := *node
	bare.HeadComment, bare.LineComment, bare.FootComment = "", "", ""
	bare.Style |= yaml.FlowStyle
	raw, err := yaml.Marshal(&bare)
	if err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(string(raw)), " "), nil
}

func render(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n", strings.Join(s.names, ", "))
		if s.description != "" {
			fmt.Fprintf(&b, "%s\n\n", s.description)
		}
		b.WriteString("| Value | Default | Description |\n|---|---|---|\n")
		for _, v := range s.values {
			fallback := v.fallback
			if fallback != "" {
				fallback = "`" + fallback + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.path, fallback, strings.ReplaceAll(v.description, "|", `\|`))
		}
	}
	return b.String()
}
