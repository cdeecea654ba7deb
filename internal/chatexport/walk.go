package chatexport

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxWarnings bounds Export.Warnings.
const maxWarnings = 20

// walker finds the conversations of an upload.
type walker struct {
	*reading
	platform string // the one asked for; "" for any
	entries  int    // files of all zips so far
	index    *index
	sources  []source
	total    int
	warnings []string
	parts    parts
}

// upload is what the file itself is called in errors: we never learn its name.
const upload = "the file"

// root reads the upload.
func (w *walker) root(r io.ReaderAt, size int64) error {
	kind, err := sniff(bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 4<<10))
	if err != nil {
		return inFile(upload, err)
	}
	switch kind {
	case zipContent:
		err = w.zip(zipped{name: upload, r: r, size: size, depth: 1})
	case jsonContent:
		f := file{name: upload, open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(r, 0, size)), nil
		}}
		err = w.bare(f)
	default:
		return fault.New(fault.Invalid, "the file is neither a zip nor JSON")
	}
	if err != nil {
		return err
	}
	for _, missing := range w.parts.missing() {
		w.warn("%s is named in the manifest but is not in the file", missing)
	}
	if len(w.sources) == 0 {
		return w.nothing()
	}
	return nil
}

// nothing says that no conversations were found, and what may be the reason.
func (w *walker) nothing() error {
	wanted := "ChatGPT or Claude"
	if w.platform != "" {
		wanted = platformNames[w.platform]
	}
	message := "the file holds no conversations of " + wanted
	if len(w.warnings) > 0 {
		message += ": " + strings.Join(w.warnings, "; ")
	}
	return fault.New(fault.Invalid, "%s", message)
}

func (w *walker) warn(format string, args ...any) {
	if len(w.warnings) < maxWarnings {
		w.warnings = append(w.warnings, fmt.Sprintf(format, args...))
	}
}

// broken warns of JSON that is none. Other files may start like JSON and be
// something else.
func (w *walker) broken(name, how string) {
	if name == upload || strings.HasSuffix(name, ".json") {
		w.warn("%s %s; it was left out", name, how)
	}
}

// bare reads an upload that is JSON itself.
func (w *walker) bare(f file) error {
	r, err := f.open()
	if err != nil {
		return inFile(f.name, err)
	}
	defer r.Close()
	err = w.json(f, r, w.platform)
	if errors.Is(err, errOther) {
		if manifest(f) {
			w.warn("it is the manifest of an export: download the zips it lists and upload those")
		}
		return nil
	}
	return err
}

// zip reads a zip: the conversations in it, or else the zips in it. Zips that
// lie beside conversations are what somebody attached to a message.
func (w *walker) zip(z zipped) error {
	zr, err := z.open(w)
	if err != nil {
		return err
	}
	before := len(w.sources)
	var inner []*zip.File
	for _, f := range zr.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		nested, err := w.entry(z.entry(w.reading, f))
		if err != nil {
			return err
		}
		if nested {
			inner = append(inner, f)
		}
	}
	// Sources hold on to their entries, and those to the zip: let the list go.
	zr.File = nil
	if len(w.sources) > before {
		return nil
	}
	for _, f := range inner {
		if err := w.inner(z, f); err != nil {
			return err
		}
	}
	return nil
}

// entry reads a file of a zip and reports whether it is a zip itself.
func (w *walker) entry(f file) (nested bool, err error) {
	r, err := f.open()
	if err != nil {
		return false, inFile(f.name, err)
	}
	defer r.Close()
	br := bufio.NewReaderSize(r, 4<<10)
	kind, err := sniff(br)
	if err != nil {
		return false, inFile(f.name, err)
	}
	w.parts.there(f.name)
	if kind != jsonContent {
		return kind == zipContent, nil
	}
	err = w.json(f, br, "")
	if errors.Is(err, errOther) {
		return false, w.parts.listed(f)
	}
	return false, err
}

// inner reads a zip in a zip. What is wrong with a deep one is only a warning:
// people attach all kinds of files to their messages.
func (w *walker) inner(z zipped, f *zip.File) error {
	in, err := z.inner(w.reading, f)
	if err == nil && in.depth > w.limits.Zips {
		w.warn("%s: zips are in one another more than %d deep; it was left out", in.name, w.limits.Zips)
		return nil
	}
	before := len(w.sources)
	if err == nil {
		err = w.zip(in)
	}
	if zr, ok := in.r.(*rewinder); ok {
		zr.close()
	}
	_, limit := errors.AsType[*limitError](err)
	if err == nil || in.depth == 2 || limit || len(w.sources) > before || !fault.Is(err, fault.Invalid) {
		return err
	}
	w.warn("%v; it was left out", err)
	return nil
}

// json reads a JSON file, as one of platform's if that is given, and keeps it
// if there are conversations in it; errOther if there are none.
func (w *walker) json(f file, r io.Reader, platform string) error {
	p := probe{limits: w.limits, platform: platform, before: w.total}
	first := w.total
	p.known = func(i int, platform string, h head) {
		if w.platform == "" || w.platform == platform {
			w.index.add(first+i, platform, h.id, h.updated)
		}
	}
	err := p.run(r)
	switch {
	case p.platform == "" && ofValue(err):
		w.broken(f.name, "is not JSON")
		return errOther
	case p.platform == "" && errors.Is(err, errTruncated):
		w.broken(f.name, "ends in the middle")
		return errOther
	case ofValue(err):
		return fault.New(fault.Invalid, "%s: the JSON is broken behind conversation %d", f.name, p.count)
	case errors.Is(err, errTruncated):
		return fault.New(fault.Invalid, "%s: the file ends in the middle, behind conversation %d", f.name, p.count)
	case errors.Is(err, errOther):
		return err
	case err != nil:
		return inFile(f.name, err)
	case w.platform != "" && w.platform != p.platform:
		return errOther
	}
	w.sources = append(w.sources, source{
		file: f, platform: p.platform, wrapped: p.wrapped, first: first, count: p.count,
	})
	w.total += p.count
	return nil
}
