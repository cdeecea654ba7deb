package chatexport

import (
	"archive/zip"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// reading is one pass over the upload with its limits and budget.
type reading struct {
	limits Limits
	size   int64
	budget *budget
}

// start starts another pass.
func (rd *reading) start() { rd.budget = rd.limits.budget(rd.size) }

// zipped is a zip and its position in the upload.
type zipped struct {
	name  string
	r     io.ReaderAt
	size  int64
	depth int // 1 for the upload itself
}

// open reads the zip's file list and rejects names outside the zip. Files are
// never written to disk, but such names indicate an attack.
func (z zipped) open(w *walker) (*zip.Reader, error) {
	// archive/zip ignores the size of the list in the header: limit its reads.
	list := &allowance{r: z.r, size: z.size, left: w.limits.Directory + 256<<10}
	zr, err := zip.NewReader(list, z.size)
	if list.left < 0 {
		return nil, fault.New(fault.Invalid, "%s: the file list is larger than %d MiB", z.name, w.limits.Directory>>20)
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, inFile(z.name, err)
	}
	list.unbounded = true
	if w.entries += len(zr.File); w.entries > w.limits.Entries {
		return nil, &limitError{fault.New(fault.Invalid, "%s: the zips contain more than %d files", z.name, w.limits.Entries)}
	}
	for _, f := range zr.File {
		switch {
		case !local(f.Name):
			return nil, fault.New(fault.Invalid, "%s: the name %q points outside the zip", z.name, shown(f.Name))
		case f.Flags&1 != 0:
			return nil, fault.New(fault.Invalid, "%s: %s is encrypted", z.name, shown(f.Name))
		}
	}
	return zr, nil
}

// local reports whether a name is inside the zip, on any operating system.
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

// allowance limits the number of bytes that archive/zip reads, and rejects offsets
// outside the zip.
type allowance struct {
	r         io.ReaderAt
	size      int64
	left      int64
	unbounded bool
}

// ReadAt implements io.ReaderAt.
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

// entry returns a file of the zip whose reads are charged to the budget.
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

// inflated is a decompressed file that is read through metered.
type inflated struct {
	io.Reader
	io.Closer
}

// inner opens a nested zip. Uncompressed ones are read in place, compressed ones
// through a rewinder.
func (z zipped) inner(rd *reading, f *zip.File) (zipped, error) {
	entry := z.entry(rd, f)
	if f.UncompressedSize64 > math.MaxInt64 {
		return zipped{}, fault.New(fault.Invalid, "%s: the size in its header is invalid", entry.name)
	}
	in := zipped{name: entry.name, size: int64(f.UncompressedSize64), depth: z.depth + 1}
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
