package chatexport

import (
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// partName matches the name of a part in a manifest.
var partName = regexp.MustCompile(`^[\w.-]*conversations[\w.-]*\.(json|zip)$`)

// maxParts limits the number of parts of a manifest.
const maxParts = 10_000

// parts are the listed and the present parts of a split export. The format of
// manifests is undocumented: any text that ends in the name of a part lists it.
type parts struct {
	list    []string
	present map[string]bool
}

// addPresent records a file.
func (p *parts) addPresent(name string) {
	base := path.Base(name)
	if !partName.MatchString(base) || len(p.present) >= maxParts {
		return
	}
	if p.present == nil {
		p.present = make(map[string]bool)
	}
	p.present[base] = true
}

// listed records the parts that a file lists if it is a manifest.
func (p *parts) listed(f file) error {
	if base := path.Base(f.name); !strings.Contains(base, "manifest") {
		return nil
	}
	text, err := texts(f)
	if err != nil {
		return inFile(f.name, err)
	}
	for line := range strings.SplitSeq(text, "\n") {
		_, value, _ := strings.Cut(line, ": ")
		if value == "" {
			value = line
		}
		if base := path.Base(value); partName.MatchString(base) && len(p.list) < maxParts {
			p.list = append(p.list, base)
		}
	}
	return nil
}

// missing returns the listed parts that are not present, in order.
func (p *parts) missing() []string {
	slices.Sort(p.list)
	return slices.DeleteFunc(slices.Compact(p.list), func(name string) bool { return p.present[name] })
}

// manifest reports whether a JSON file lists zips to download.
func manifest(f file) bool {
	text, err := texts(f)
	return err == nil && strings.Contains(text, "://") && strings.Contains(text, ".zip")
}

// texts returns the texts in the first MiB of a JSON file, one per line.
func texts(f file) (string, error) {
	r, err := f.open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	s := newScanner(io.LimitReader(r, 1<<20))
	s.maxDepth = 64
	var out lines
	if err := s.flatten(&out, ""); err != nil && s.err != nil && s.err != io.EOF { //nolint:errorlint // io.Reader's contract
		return "", s.err
	}
	return out.String(), nil
}
