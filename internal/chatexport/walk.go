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
	// looksLike describes a file without conversations.
	looksLike string
}

// upload is the name of the uploaded file in errors: its real name is unknown.
const upload = "the file"

// root reads the uploaded file.
func (w *walker) root(r io.ReaderAt, size int64) error {
	f := file{name: upload, open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, 0, size)), nil
	}}
	kind, start, err := sniff(bufio.NewReaderSize(io.NewSectionReader(r, 0, size), sniffed))
	if err != nil {
		return inFile(upload, err)
	}
	if kind == zipContent {
		err = w.zip(zipped{name: upload, r: r, size: size, depth: 1})
	} else {
		err = w.file(f, r, kind, start, 1)
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

// file reads an upload that is not a zip, decompressed depth-1 times. r is its
// content, and start the beginning of it.
func (w *walker) file(f file, r io.ReaderAt, kind content, start []byte, depth int) error {
	switch kind {
	case gzipContent:
		return w.gzip(f, depth+1)
	case tarContent:
		return w.tar(f, r)
	case other:
		w.looksLike = describe(start)
		return nil
	}
	return w.bare(f, kind)
}

// noConversations returns the error of a file without conversations: what it looks
// like, with the warnings as possible reasons, and what to do.
func (w *walker) noConversations() error {
	wanted := PlatformNames("or")
	if w.platform != "" {
		wanted = PlatformName(w.platform)
	}
	message := "the file contains no conversations of " + wanted
	if w.looksLike != "" {
		message += "; it looks like " + w.looksLike
	}
	if len(w.warnings) > 0 {
		return fault.New(fault.Invalid, "%s: %s", message, strings.Join(w.warnings, "; "))
	}
	return fault.New(fault.Invalid, "%s. %s", message, otherChats)
}

// otherChats says to developers how to store what cannot be imported, and howToExport to
// end users what to import instead.
const (
	otherChats  = "To store other chats, send each conversation with its messages to POST /api/chat-history/ingest/custom-online."
	howToExport = "Request an export in the settings of your assistant, and import the file as you downloaded it."
)

// ForEndUsers returns the reason why a file was not imported with a suggestion for end
// users instead of developers.
func ForEndUsers(reason string) string {
	if cause, ok := strings.CutSuffix(reason, otherChats); ok {
		return cause + howToExport
	}
	return reason
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

// bare reads an upload that is a single file with conversations.
func (w *walker) bare(f file, kind content) error {
	r, err := f.open()
	if err != nil {
		return inFile(f.name, err)
	}
	defer r.Close()
	err = w.read(f, r, kind, w.platform)
	if !errors.Is(err, errOther) {
		return err
	}
	switch {
	case kind == htmlContent:
		w.looksLike = "a web page"
	case kind == csvContent: // with the columns of an export
		w.looksLike = "a spreadsheet (CSV) without complete rows"
	case kind == jsonContent && manifest(f):
		w.looksLike = "the manifest of an export"
		w.warn("download the zips that it lists and import them")
	}
	return nil
}

// read reads a file of a type with conversations from r.
func (w *walker) read(f file, r io.Reader, kind content, platform string) error {
	if convert := conversions[kind]; convert != nil {
		f, r = f.asJSON(w.limits, convert), &converted{next: convert(r, w.limits)}
	}
	return w.json(f, r, platform)
}

// zip reads the conversations in a zip, or in its nested zips if it has none.
// Zips next to conversations are attachments of messages.
func (w *walker) zip(z zipped) error {
	zr, err := z.open(w)
	if err != nil {
		return err
	}
	before := len(w.sources)
	w.looksLike = documentOf(zr.File)
	var inner []*zip.File
	for _, f := range zr.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		nested, err := w.zipEntry(z.entry(w.reading, f))
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

// zipEntry opens and reads a file of a zip and reports whether it is a nested zip.
func (w *walker) zipEntry(f file) (nested bool, err error) {
	r, err := f.open()
	if err != nil {
		return false, inFile(f.name, err)
	}
	defer r.Close()
	return w.entry(f, r)
}

// entry reads a file of an archive from r and reports whether it is a nested zip.
func (w *walker) entry(f file, r io.Reader) (nested bool, err error) {
	br := bufio.NewReaderSize(r, sniffed)
	kind, _, err := sniff(br)
	if err != nil {
		return false, inFile(f.name, err)
	}
	w.parts.addPresent(f.name)
	switch kind {
	case other, tarContent:
		return false, nil
	case zipContent:
		return true, nil
	case gzipContent:
		return false, w.gunzipEntry(f, br)
	}
	err = w.read(f, br, kind, "")
	if errors.Is(err, errOther) {
		return false, w.parts.listed(f)
	}
	return false, err
}

// gunzipEntry reads a compressed file of an archive, such as a session. Archives in
// it are not opened.
func (w *walker) gunzipEntry(f file, packed io.Reader) error {
	r, err := w.gunzip(f.name, packed)
	if err != nil {
		return w.attachment(f.name, err)
	}
	br := bufio.NewReaderSize(r, sniffed)
	kind, _, err := sniff(br)
	if err != nil {
		return w.attachment(f.name, err)
	}
	if kind != jsonContent && kind != htmlContent && kind != csvContent {
		return nil
	}
	if err = w.read(f.gunzipped(w.reading), br, kind, ""); errors.Is(err, errOther) {
		return nil
	}
	return err
}

// attachment turns the error of a damaged file, which may be attached to a message,
// into a warning.
func (w *walker) attachment(name string, err error) error {
	err = inFile(name, err)
	if _, limit := errors.AsType[*limitError](err); limit || !fault.Is(err, fault.Invalid) {
		return err
	}
	w.warn("%v; skipped", err)
	return nil
}

// inner reads a nested zip.
func (w *walker) inner(z zipped, f *zip.File) error {
	in, err := z.inner(w.reading, f)
	if err != nil {
		return w.ignore(in, 0, err)
	}
	return w.nested(in)
}

// nested reads a nested zip. Errors of deeper ones are only warnings: they may be
// attachments of messages.
func (w *walker) nested(in zipped) error {
	if in.depth > w.limits.Zips {
		w.warn("%s: zips are nested more than %d deep; skipped", in.name, w.limits.Zips)
		return nil
	}
	before := len(w.sources)
	err := w.zip(in)
	if zr, ok := in.r.(*rewinder); ok {
		zr.close()
	}
	return w.ignore(in, len(w.sources)-before, err)
}

// ignore turns the error of a nested zip in which n files were found into a warning
// if it may be an attachment.
func (w *walker) ignore(in zipped, n int, err error) error {
	_, limit := errors.AsType[*limitError](err)
	if err == nil || in.depth == 2 || limit || n > 0 || !fault.Is(err, fault.Invalid) {
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
	p.known = func(i int, f *format, h head) {
		if w.platform == "" || w.platform == f.platform {
			w.index.add(first+i, f.platform, h.id, h.updated)
		}
	}
	err := p.run(r)
	if p.format == nil && f.name == upload {
		w.looksLike = p.shape.String()
	}
	if err != nil {
		return w.jsonError(f, &p, err)
	}
	if w.platform != "" && w.platform != p.format.platform {
		return errOther
	}
	if p.cut {
		w.warn("%s ends in an incomplete record; skipped", f.name)
	}
	w.sources = append(w.sources, source{
		file: f, format: p.format, path: p.path, first: first, count: p.count, sizes: p.sizes,
	})
	w.total += p.count
	return nil
}

// jsonError returns the error of a JSON file: errOther if no conversation precedes
// it.
func (w *walker) jsonError(f file, p *probe, err error) error {
	switch {
	case p.format == nil && ofValue(err):
		w.warnInvalid(f.name, "is not JSON")
		return errOther
	case p.format == nil && errors.Is(err, errTruncated):
		w.warnInvalid(f.name, "ends unexpectedly")
		return errOther
	case ofValue(err):
		return fault.New(fault.Invalid, "%s: invalid JSON after conversation %d", f.name, p.count)
	case errors.Is(err, errTruncated):
		return fault.New(fault.Invalid, "%s: the file ends unexpectedly after conversation %d", f.name, p.count)
	case errors.Is(err, errOther):
		return err
	}
	return inFile(f.name, err)
}
