package chatexport

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// gunzipped is the decompressed content of a file, charged to the budget.
func (f file) gunzipped(rd *reading) file {
	return file{name: f.name, open: func() (io.ReadCloser, error) {
		packed, err := f.open()
		if err != nil {
			return nil, err
		}
		r, err := rd.gunzip(f.name, packed)
		if err != nil {
			packed.Close()
			return nil, err
		}
		return &inflated{Reader: r, Closer: packed}, nil
	}}
}

// gunzip decompresses a stream.
func (rd *reading) gunzip(name string, packed io.Reader) (io.Reader, error) {
	r, err := gzip.NewReader(bufio.NewReaderSize(packed, 32<<10))
	if err != nil {
		return nil, err
	}
	return &metered{r: r, name: name, budget: rd.budget}, nil
}

// tar reads the conversations in a tar. Nothing is read twice in a pass, so that a
// pass decompresses a compressed tar once.
func (w *walker) tar(f file, at io.ReaderAt) error {
	stream := io.NewSectionReader(at, 0, math.MaxInt64)
	list := tar.NewReader(struct{ io.Reader }{stream})
	before := len(w.sources)
	var inner []zipped
	for {
		header, err := list.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return inFile(f.name, err)
		}
		entry, err := w.tarEntry(f, at, stream, header)
		if err != nil {
			return err
		}
		if entry.open == nil {
			continue
		}
		nested, err := w.entry(entry, list)
		if err != nil {
			return err
		}
		if nested {
			inner = append(inner, zipped{name: entry.name, r: &rewinder{open: entry.open, size: header.Size}, size: header.Size, depth: 2})
		}
	}
	if len(w.sources) > before {
		return nil
	}
	for _, z := range inner {
		if err := w.nested(z); err != nil {
			return err
		}
	}
	return nil
}

// tarEntry returns the file of a header; its open is nil if it is not a file.
func (w *walker) tarEntry(f file, at io.ReaderAt, stream *io.SectionReader, header *tar.Header) (file, error) {
	if w.entries++; w.entries > w.limits.Entries {
		return file{}, &limitError{fault.New(fault.Invalid, "%s: the archive contains more than %d files", f.name, w.limits.Entries)}
	}
	if name := strings.TrimPrefix(header.Name, "./"); !local(name) {
		return file{}, fault.New(fault.Invalid, "%s: the name %q points outside the archive", f.name, shown(header.Name))
	}
	if header.Typeflag != tar.TypeReg || header.PAXRecords["GNU.sparse.major"] != "" || header.Size == 0 {
		return file{}, nil
	}
	// The list reads whole blocks, so that it is now at the start of the file.
	start, err := stream.Seek(0, io.SeekCurrent)
	if err != nil {
		return file{}, err
	}
	return file{name: shown(header.Name), open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(at, start, header.Size)), nil
	}}, nil
}

// gzip reads a compressed upload: a tar, a zip or a file with conversations.
func (w *walker) gzip(f file, depth int) error {
	if depth > w.limits.Zips {
		return fault.New(fault.Invalid, "%s: it is compressed more than %d times", f.name, w.limits.Zips)
	}
	f = f.gunzipped(w.reading)
	r, err := f.open()
	if err != nil {
		return inFile(f.name, err)
	}
	kind, start, err := sniff(bufio.NewReaderSize(r, sniffed))
	r.Close()
	if err != nil {
		return inFile(f.name, err)
	}
	if kind != zipContent {
		return w.file(f, &rewinder{open: f.open, size: math.MaxInt64}, kind, start, depth)
	}
	size, err := w.measure(f)
	if err != nil {
		return inFile(f.name, err)
	}
	return w.zip(zipped{name: f.name, r: &rewinder{open: f.open, size: size}, size: size, depth: 1})
}

// measure returns the size of a compressed file.
func (w *walker) measure(f file) (int64, error) {
	r, err := f.open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}
