package chatexport

import (
	"archive/zip"
	"errors"
	"io"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// ErrNoFile says that a zip has no file of a name.
var ErrNoFile = errors.New("the zip has no such file")

// Zip is a zip whose list of files was found good, for formats that are not
// read here. What is read of it is held to the limits.
type Zip struct {
	reading *reading
	zip     zipped
	files   map[string]*zip.File
}

// OpenZip reads the list of files of a zip of size bytes. Invalid when it is
// damaged, hostile or no zip, and when two of its files have one name; any
// other error is r's own.
func OpenZip(r io.ReaderAt, size int64, limits Limits) (*Zip, error) {
	rd := &reading{limits: limits.withDefaults(), size: size}
	z := &Zip{reading: rd, zip: zipped{name: upload, r: r, size: size, depth: 1}, files: make(map[string]*zip.File)}
	zr, err := z.zip.open(&walker{reading: rd})
	if err != nil {
		return nil, err
	}
	for _, f := range zr.File {
		if z.files[f.Name] != nil {
			return nil, fault.New(fault.Invalid, "%s: there are two files of the name %s", upload, shown(f.Name))
		}
		z.files[f.Name] = f
	}
	return z, nil
}

// Open reads a file from its beginning; ErrNoFile when there is none of the
// name. Each reading may inflate to what the limits allow the whole zip.
func (z *Zip) Open(name string) (io.ReadCloser, error) {
	f := z.files[name]
	if f == nil {
		return nil, ErrNoFile
	}
	z.reading.start()
	r, err := z.zip.entry(z.reading, f).open()
	return r, z.About(name, err)
}

// About says what is wrong with a file of the zip, given an error of reading
// it: Invalid where it is the file's fault, nil for nil.
func (*Zip) About(name string, err error) error { return inFile(name, err) }
