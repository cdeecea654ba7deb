package chatexport

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// reading is one pass over the upload: its limits and what is left of them.
type reading struct {
	limits Limits
	size   int64
	budget *budget
}

// start begins another pass.
func (rd *reading) start() { rd.budget = rd.limits.budget(rd.size) }

// zipped is a zip and where in the upload it is.
type zipped struct {
	name  string
	r     io.ReaderAt
	size  int64
	depth int // 1 for the upload itself
}

// open reads the zip's list of files and refuses names that lead out of it.
// Nothing is ever written to a path, but who makes such names means harm.
func (z zipped) open(w *walker) (*zip.Reader, error) {
	// archive/zip takes the list's length from wherever it ends, not from what
	// the header says of it: bound what it may read.
	list := &allowance{r: z.r, size: z.size, left: w.limits.Directory + 256<<10}
	zr, err := zip.NewReader(list, z.size)
	if list.left < 0 {
		return nil, fault.New(fault.Invalid, "%s: its list of files is longer than %d MiB", z.name, w.limits.Directory>>20)
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, inFile(z.name, err)
	}
	list.unbounded = true
	if w.entries += len(zr.File); w.entries > w.limits.Entries {
		return nil, &limitError{fault.New(fault.Invalid, "%s: the zips hold more than %d files", z.name, w.limits.Entries)}
	}
	for _, f := range zr.File {
		switch {
		case !local(f.Name):
			return nil, fault.New(fault.Invalid, "%s: the name %q leads out of the zip", z.name, shown(f.Name))
		case f.Flags&1 != 0:
			return nil, fault.New(fault.Invalid, "%s: %s is encrypted", z.name, shown(f.Name))
		}
	}
	return zr, nil
}

// local reports whether a name stays within the zip, on any system.
func local(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// allowance is a zip as archive/zip is given it: it stops giving bytes when it
// has given enough, and none where a header names a place that cannot be.
type allowance struct {
	r         io.ReaderAt
	size      int64
	left      int64
	unbounded bool
}

// ReadAt reads what the allowance permits.
func (b *allowance) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > b.size {
		return 0, zip.ErrFormat
	}
	if !b.unbounded {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, zip.ErrFormat
		}
	}
	return b.r.ReadAt(p, off)
}

// entry returns a file of the zip. What is read of it is charged.
func (z zipped) entry(rd *reading, f *zip.File) file {
	name := z.name + "/" + shown(f.Name)
	if z.depth == 1 {
		name = shown(f.Name)
	}
	return file{name: name, open: func() (io.ReadCloser, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		return &inflated{Reader: &metered{r: r, name: name, budget: rd.budget}, Closer: r}, nil
	}}
}

// inflated is a file that is read through its meter.
type inflated struct {
	io.Reader
	io.Closer
}

// inner returns the zip that a file of the zip is. One that is only stored is
// read in place, a compressed one by a rewinder.
func (z zipped) inner(rd *reading, f *zip.File) (zipped, error) {
	entry := z.entry(rd, f)
	in := zipped{name: entry.name, size: int64(f.UncompressedSize64), depth: z.depth + 1}
	if in.size < 0 {
		return in, fault.New(fault.Invalid, "%s: the size in its header cannot be", in.name)
	}
	if f.Method == zip.Store {
		at, err := f.DataOffset()
		if err != nil {
			return in, inFile(in.name, err)
		}
		if at < 0 || in.size > z.size-at {
			return in, fault.New(fault.Invalid, "%s: the zip is damaged or incomplete", in.name)
		}
		in.r = io.NewSectionReader(z.r, at, in.size)
		return in, nil
	}
	in.r = &rewinder{open: entry.open, size: in.size}
	return in, nil
}

// content says what a file starts like.
type content int

const (
	other content = iota
	zipContent
	jsonContent
)

// sniff looks at the first bytes of a file.
func sniff(r *bufio.Reader) (content, error) {
	start, err := r.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return other, err
	}
	if bytes.HasPrefix(start, []byte("PK\x03\x04")) || bytes.HasPrefix(start, []byte("PK\x05\x06")) {
		return zipContent, nil
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\uFEFF")), " \t\r\n")
	if len(start) > 0 && (start[0] == '[' || start[0] == '{') {
		return jsonContent, nil
	}
	return other, nil
}
