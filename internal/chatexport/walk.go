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

// maxWarnings limits Export.Warnings.
const maxWarnings = 20

// walker finds the conversations of an upload.
type walker struct {
	*reading
	platform string // the requested platform; "" for any
	entries  int    // number of files in all zips so far
	index    *index
	sources  []source
	total    int
	warnings []string
	parts    parts
}

// upload is the name of the uploaded file in errors: its real name is unknown.
const upload = "the file"

// root reads the uploaded file.
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
		w.warn("%s is listed in the manifest but missing from the file", missing)
	}
	if len(w.sources) == 0 {
		return w.noConversations()
	}
	return nil
}

// noConversations returns the error of a file without conversations, with the
// warnings as possible reasons.
func (w *walker) noConversations() error {
	wanted := "ChatGPT or Claude"
	if w.platform != "" {
		wanted = platformNames[w.platform]
	}
	message := "the file contains no conversations of " + wanted
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

// warnInvalid warns of an invalid JSON file. Files with other names may only look
// like JSON.
func (w *walker) warnInvalid(name, how string) {
	if name == upload || strings.HasSuffix(name, ".json") {
		w.warn("%s %s; skipped", name, how)
	}
}

// bare reads an upload that is a JSON file.
func (w *walker) bare(f file) error {
	r, err := f.open()
	if err != nil {
		return inFile(f.name, err)
	}
	defer r.Close()
	err = w.json(f, r, w.platform)
	if errors.Is(err, errOther) {
		if manifest(f) {
			w.warn("this is the manifest of an export: download the zips it lists and upload them")
		}
		return nil
	}
	return err
}

// zip reads the conversations in a zip, or in its nested zips if it has none.
// Zips next to conversations are attachments of messages.
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
	// Sources reference their entries, which reference the zip: free the list.
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

// entry reads a file of a zip and reports whether it is a nested zip.
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
	w.parts.addPresent(f.name)
	if kind != jsonContent {
		return kind == zipContent, nil
	}
	err = w.json(f, br, "")
	if errors.Is(err, errOther) {
		return false, w.parts.listed(f)
	}
	return false, err
}

// inner reads a nested zip. Errors of deeper ones are only warnings: they may be
// attachments of messages.
func (w *walker) inner(z zipped, f *zip.File) error {
	in, err := z.inner(w.reading, f)
	if err == nil && in.depth > w.limits.Zips {
		w.warn("%s: zips are nested more than %d deep; skipped", in.name, w.limits.Zips)
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
	w.warn("%v; skipped", err)
	return nil
}

// json reads a JSON file, as an export of platform unless it is "", and adds it to
// the sources if it contains conversations; errOther if not.
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
		w.warnInvalid(f.name, "is not JSON")
		return errOther
	case p.platform == "" && errors.Is(err, errTruncated):
		w.warnInvalid(f.name, "ends unexpectedly")
		return errOther
	case ofValue(err):
		return fault.New(fault.Invalid, "%s: invalid JSON after conversation %d", f.name, p.count)
	case errors.Is(err, errTruncated):
		return fault.New(fault.Invalid, "%s: the file ends unexpectedly after conversation %d", f.name, p.count)
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
