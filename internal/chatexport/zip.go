package chatexport

import (
	"archive/zip"
	"errors"
	"io"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// ErrNoFile is returned for a file that is not in the zip.
var ErrNoFile = errors.New("the zip has no such file")

// Zip is a zip with a valid file list, for formats of other packages. Its reads
// are limited.
type Zip struct {
	reading *reading
	zip     zipped
	files   map[string]*zip.File
}

// OpenZip reads the file list of a zip of size bytes. Invalid if it is damaged,
// malicious or not a zip, or has duplicate names; other errors are those of r.
func OpenZip(r io.ReaderAt, size int64, limits Limits) (*Zip, error) {
	rd := &reading{limits: limits.withDefaults(), size: size}
	z := &Zip{reading: rd, zip: zipped{name: upload, r: r, size: size, depth: 1}, files: make(map[string]*zip.File)}
	zr, err := z.zip.open(&walker{reading: rd})
	if err != nil {
		return nil, err
	}
	for _, f := range zr.File {
		if z.files[f.Name] != nil {
			return nil, fault.New(fault.Invalid, "%s: duplicate file name %s", upload, shown(f.Name))
		}
		z.files[f.Name] = f
	}
	return z, nil
}

// Open opens a file; ErrNoFile. Each read may decompress as much as the limits
// allow for the whole zip.
func (z *Zip) Open(name string) (io.ReadCloser, error) {
	f := z.files[name]
	if f == nil {
		return nil, ErrNoFile
	}
	z.reading.start()
	r, err := z.zip.entry(z.reading, f).open()
	return r, z.About(name, err)
}

// About returns the error of a file of the zip for an error of reading it: Invalid
// if the file is at fault, nil for nil.
func (*Zip) About(name string, err error) error { return inFile(name, err) }
