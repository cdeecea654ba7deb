package chatexport

import (
	"fmt"
	"io"
)

// tailSize is the size of the end of a compressed zip that is kept in memory. It
// contains the file list, which would otherwise need another pass per read.
const tailSize = 1 << 20

// rewinder reads a compressed file at any offset without storing it: to go back
// it decompresses the file from the start. It suits nested zips, whose files are
// read in order. Every pass is charged to the budget.
type rewinder struct {
	open   func() (io.ReadCloser, error)
	size   int64
	r      io.ReadCloser
	pos    int64
	tail   []byte // the last bytes, once read
	listed bool   // the list was read and the tail is not needed
	buffer []byte
}

// ReadAt implements io.ReaderAt.
func (z *rewinder) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= z.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), z.size-off)]
	if start := z.size - int64(len(z.tail)); off >= start {
		copy(want, z.tail[off-start:])
	} else if err := z.read(want, off); err != nil {
		return 0, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// read fills p from off.
func (z *rewinder) read(p []byte, off int64) error {
	if z.r == nil || off < z.pos {
		if err := z.start(); err != nil {
			return err
		}
	}
	// The first read is at the end: keep the tail.
	if start := max(0, z.size-tailSize); z.tail == nil && !z.listed && off >= start {
		if err := z.discard(start); err != nil {
			return err
		}
		tail := make([]byte, z.size-start)
		if err := z.fill(tail); err != nil {
			return err
		}
		z.tail = tail
		copy(p, tail[off-start:])
		return nil
	}
	if err := z.discard(off); err != nil {
		return err
	}
	return z.fill(p)
}

func (z *rewinder) start() (err error) {
	z.stop()
	if z.r, err = z.open(); err != nil {
		return fmt.Errorf("open nested zip: %w", err)
	}
	if z.buffer == nil {
		z.buffer = make([]byte, 32<<10)
	}
	return nil
}

// stop closes the stream; the next read starts a new pass.
func (z *rewinder) stop() {
	if z.r != nil {
		z.r.Close()
	}
	z.r, z.pos = nil, 0
}

// close frees the memory after the list was read. Reads still work.
func (z *rewinder) close() {
	z.stop()
	z.tail, z.buffer, z.listed = nil, nil, true
}

// discard skips to off.
func (z *rewinder) discard(off int64) error {
	for z.pos < off {
		if err := z.fill(z.buffer[:min(int64(len(z.buffer)), off-z.pos)]); err != nil {
			return err
		}
	}
	return nil
}

func (z *rewinder) fill(p []byte) error {
	n, err := io.ReadFull(z.r, p)
	z.pos += int64(n)
	if err != nil {
		z.stop()
		return err
	}
	return nil
}
