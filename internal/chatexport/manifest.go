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

// manifest reports whether a JSON file is the list of the zips of an export: an
// object with a list in which each element names a zip, and some have its address.
func manifest(f file) bool {
	r, err := f.open()
	if err != nil {
		return false
	}
	defer r.Close()
	s := newScanner(io.LimitReader(r, 1<<20))
	s.maxDepth = 8
	found := false
	err = s.object(func([]byte) error {
		elements, zips, addresses := 0, 0, false
		list, err := s.is('[')
		if err != nil || !list {
			return orSkip(s, err)
		}
		err = s.array(func() error {
			elements++
			var texts lines
			err := s.flatten(&texts, "")
			if zipName.MatchString(texts.String()) {
				zips++
			}
			addresses = addresses || zipAddress.MatchString(texts.String())
			return err
		})
		found = found || addresses && zips == elements
		return err
	})
	return err == nil && found
}

// zipName matches the name or address of a zip as a text of its own, after the name
// of its member, and zipAddress an address.
var (
	zipName    = regexp.MustCompile(`(?m)^(\w+: )?\S+\.zip(\?\S*)?$`)
	zipAddress = regexp.MustCompile(`(?m)^(\w+: )?https?://\S+\.zip(\?\S*)?$`)
)

func orSkip(s *scanner, err error) error {
	if err != nil {
		return err
	}
	return s.skip()
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
