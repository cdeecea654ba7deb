package erasure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// FileName is the name of the ledger in its directory.
const FileName = "erasures.jsonl"

// header is the first line of a ledger.
type header struct {
	Ledger string    `json:"ledger"` // its id
	Begun  time.Time `json:"begun"`
	After  int64     `json:"after"` // the position before the first entry; greater than 0 after Compact
}

// Ledger is an append-only file of erasures: a header and one JSON object per
// line. One process uses it at a time.
type Ledger struct {
	header
	path string
	file *os.File
	last int64
	// complete is the position after which no entry is missing.
	complete int64
}

// OpenLedger opens the ledger in dir, or creates one. A line that a crash left
// incomplete is removed: it was not acknowledged. The error is Conflict if
// another process uses the ledger.
func OpenLedger(dir string, now time.Time) (*Ledger, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeLedger(path, header{Ledger: uuid.NewString(), Begun: now.UTC()}, strings.NewReader("")); err != nil {
			return nil, fmt.Errorf("create erasure ledger: %w", err)
		}
	}
	l := &Ledger{path: path}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open erasure ledger %s: %w", path, err)
	}
	return l, nil
}

func (l *Ledger) open() error {
	file, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := l.read(file); err != nil {
		return errors.Join(err, file.Close())
	}
	l.file = file
	return nil
}

// read locks the file, reads the header and the last position, and moves to the
// end of the last complete line.
func (l *Ledger) read(file *os.File) error {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fault.New(fault.Conflict, "another process uses the ledger")
	}
	first, size := true, int64(0)
	err := eachLine(file, func(line []byte) error {
		size += int64(len(line)) + 1
		if first {
			first = false
			if err := json.Unmarshal(line, &l.header); err != nil || l.Ledger == "" {
				return fault.New(fault.Invalid, "the file is not an erasure ledger")
			}
			l.last, l.complete = l.After, l.After
			return nil
		}
		var e Entry
		err := json.Unmarshal(line, &e)
		skips := e.Kind == Loss && e.Position > l.last
		if err != nil || e.Position != l.last+1 && !skips {
			return fault.New(fault.Invalid, "the ledger is damaged after entry %d: restore it from a copy", l.last)
		}
		l.last = e.Position
		if e.Kind == Loss {
			l.complete = e.Position
		}
		return nil
	})
	if err == nil && first {
		err = fault.New(fault.Invalid, "the file is not an erasure ledger")
	}
	if err != nil {
		return err
	}
	if err := file.Truncate(size); err != nil {
		return err
	}
	_, err = file.Seek(size, io.SeekStart)
	return err
}

// eachLine calls fn with every complete line.
func eachLine(r io.Reader, fn func([]byte) error) error {
	b := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
}

// ID identifies the ledger.
func (l *Ledger) ID() string { return l.Ledger }

// Last returns the position of the last entry.
func (l *Ledger) Last() int64 { return l.last }

// Append writes entries, sets their positions, and returns when they are on the
// disk. After an error the ledger must be opened again.
func (l *Ledger) Append(entries []Entry) error {
	for i := range entries {
		entries[i].Position = l.last + int64(i) + 1
	}
	if err := l.write(entries); err != nil {
		return err
	}
	l.last += int64(len(entries))
	return nil
}

// AppendLoss records that entries are missing, of which positions up to one are known. Others that were lost
// have smaller positions than the microseconds since 1970, to which a loss skips: no ledger grows that fast.
func (l *Ledger) AppendLoss(now time.Time, known int64) error {
	position := max(l.last, known, now.UnixMicro()) + 1
	if err := l.write([]Entry{{Position: position, At: now.UTC(), Kind: Loss}}); err != nil {
		return err
	}
	l.last, l.complete = position, position
	return nil
}

func (l *Ledger) write(entries []Entry) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	for _, e := range entries {
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("append to erasure ledger: %w", err)
		}
	}
	if _, err := l.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("append to erasure ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("append to erasure ledger: %w", err)
	}
	return nil
}

// Batches calls fn with the erasures after a position, in order, in lists of up to size entries that fn may keep.
// It returns the error of fn as it is.
func (l *Ledger) Batches(after int64, size int, fn func([]Entry) error) error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("read erasure ledger: %w", err)
	}
	defer file.Close()
	var list []Entry
	var refused error
	first := true
	err = eachLine(file, func(line []byte) error {
		if first {
			first = false
			return nil
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Position > after && e.Kind != Loss {
			list = append(list, e)
		}
		if len(list) == size {
			refused = fn(list)
			list = nil
		}
		return refused
	})
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return fmt.Errorf("read erasure ledger: %w", err)
	case len(list) > 0:
		return fn(list)
	}
	return nil
}

// Compact removes the leading entries that are older than before. A backup that
// is older can then no longer be restored. It copies the kept entries without decoding
// them: a ledger may be larger than the memory.
func (l *Ledger) Compact(before time.Time) (removed int64, err error) {
	removed, err = l.compact(before)
	if err != nil {
		return 0, fmt.Errorf("compact erasure ledger: %w", err)
	}
	return removed, nil
}

func (l *Ledger) compact(before time.Time) (removed int64, err error) {
	file, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	h, offset, removed, err := l.expired(file, before)
	if err != nil || removed == 0 {
		return 0, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	if err := writeLedger(l.path, h, file); err != nil {
		return 0, err
	}
	replaced := l.file
	if err := l.open(); err != nil {
		return 0, err
	}
	return removed, replaced.Close()
}

// errKept ends the search for expired entries.
var errKept = errors.New("entry is kept")

// expired reads the leading entries that are older than before. It returns the header of
// the ledger without them, the offset of the first kept entry, and their number.
func (l *Ledger) expired(r io.Reader, before time.Time) (h header, offset, n int64, err error) {
	h = l.header
	err = eachLine(r, func(line []byte) error {
		if offset > 0 { // not the header
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return err
			}
			if !e.At.Before(before) {
				return errKept
			}
			h.After = e.Position
			n++
		}
		offset += int64(len(line)) + 1
		return nil
	})
	if errors.Is(err, errKept) {
		err = nil
	}
	return h, offset, n, err
}

// Close unlocks and closes the file. A child process that is being started may have it
// open, so closing it is not enough.
func (l *Ledger) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

// writeLedger replaces the file atomically.
func writeLedger(path string, h header, entries io.Reader) error {
	file, err := os.CreateTemp(filepath.Dir(path), FileName+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after the rename
	w := bufio.NewWriter(file)
	err = json.NewEncoder(w).Encode(h)
	if err == nil {
		_, err = io.Copy(w, entries)
	}
	err = errors.Join(err, w.Flush(), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
