package chatexport

import (
	"fmt"
	"io"
)

// tailSize is how much of the end of a compressed zip is kept: its list of
// files is there, and without it each look at the list is another pass.
const tailSize = 1 << 20

// rewinder reads at any offset of a compressed file without a copy of it, in
// memory or on disk: to go back it starts again. That is for a zip in a zip,
// whose files lie one behind another, so that a pass over them is a pass over
// it. Every pass is charged to the budget.
type rewinder struct {
	open   func() (io.ReadCloser, error)
	size   int64
	r      io.ReadCloser
	pos    int64
	tail   []byte // the last bytes, once they were seen
	listed bool   // the list was read: no more need of the tail
	buffer []byte
}

// ReadAt reads len(p) bytes at off, io.EOF behind the end.
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

// read reads all of p at off.
func (z *rewinder) read(p []byte, off int64) error {
	if z.r == nil || off < z.pos {
		if err := z.start(); err != nil {
			return err
		}
	}
	// The first read is for the end: go there by way of the tail.
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
		return fmt.Errorf("open zip in a zip: %w", err)
	}
	if z.buffer == nil {
		z.buffer = make([]byte, 32<<10)
	}
	return nil
}

// stop lets go of the stream; the next read starts again.
func (z *rewinder) stop() {
	if z.r != nil {
		z.r.Close()
	}
	z.r, z.pos = nil, 0
}

// close lets go of all memory, when the list was read. Reading goes on working.
func (z *rewinder) close() {
	z.stop()
	z.tail, z.buffer, z.listed = nil, nil, true
}

// discard reads up to off.
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
