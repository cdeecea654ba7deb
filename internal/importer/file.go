package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// heldChunks is how many chunks of a file are held: the one that is read, the
// one before, the next one, and the zip's list at the end.
const heldChunks = 4

// file is an uploaded file, read from its chunks. While one is read the next
// one is fetched.
type file struct {
	ctx   context.Context //nolint:containedctx // io.ReaderAt takes none; the file ends with the work it is read for
	files chat.ImportFiles
	run   chat.ImportRun

	mu     sync.Mutex
	chunks []*chunk // the one used last comes last
	failed error    // the first failure to read
	ahead  sync.WaitGroup
}

// chunk is a part of the file, or on its way to be.
type chunk struct {
	n    int
	once sync.Once
	data []byte
	err  error
}

var _ io.ReaderAt = (*file)(nil)

func openFile(ctx context.Context, files chat.ImportFiles, run chat.ImportRun) *file {
	return &file{ctx: ctx, files: files, run: run}
}

// close waits for what is still being fetched.
func (f *file) close() { f.ahead.Wait() }

// errUnread is all that the readers of formats hear of a store's failure: they
// would take some for one of the file's.
var errUnread = errors.New("the file could not be read from the store")

// cause returns why the reading failed: what the store said, if it was the
// store, else err. What came of a file that could not all be read counts as
// nothing.
func (f *file) cause(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.failed, err)
}

// ReadAt reads from the chunks. It is safe for concurrent use.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: before the file", off)
	}
	read := 0
	for read < len(p) {
		at := off + int64(read)
		if at >= f.run.Size {
			return read, io.EOF
		}
		data, err := f.chunk(int(at / chat.ChunkSize))
		if err != nil {
			return read, err
		}
		within := at % chat.ChunkSize
		if within >= int64(len(data)) {
			return read, f.fail(fmt.Errorf("chunk %d of the file is too short", at/chat.ChunkSize))
		}
		read += copy(p[read:], data[within:])
	}
	return read, nil
}

// chunk returns chunk n; the next one is fetched meanwhile.
func (f *file) chunk(n int) ([]byte, error) {
	c, _ := f.hold(n)
	if int64(n+1)*chat.ChunkSize < f.run.Size {
		if next, isNew := f.hold(n + 1); isNew {
			f.ahead.Go(func() { f.fetch(next) })
		}
	}
	f.fetch(c)
	if c.err != nil {
		return nil, f.fail(c.err)
	}
	return c.data, nil
}

// hold returns the place of chunk n, a new one if there is none.
func (f *file) hold(n int) (c *chunk, isNew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.chunks {
		if c.n == n {
			f.chunks = append(append(f.chunks[:i:i], f.chunks[i+1:]...), c)
			return c, false
		}
	}
	c = &chunk{n: n}
	if len(f.chunks) >= heldChunks {
		f.chunks = f.chunks[1:]
	}
	f.chunks = append(f.chunks, c)
	return c, true
}

func (f *file) fetch(c *chunk) {
	c.once.Do(func() { c.data, c.err = f.files.Chunk(f.ctx, f.run, c.n) })
}

func (f *file) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return errUnread
}
