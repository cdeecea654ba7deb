package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxChunks is the number of chunks in memory: the one being read, its
// predecessor and successor, and the zip directory at the end of the file.
const maxChunks = 4

// file reads an uploaded file from its chunks and prefetches the next chunk.
type file struct {
	ctx   context.Context //nolint:containedctx // io.ReaderAt has no context; the file lives as long as its import
	files Files
	run   Run

	mu       sync.Mutex
	chunks   []*chunk // most recently used last
	failed   error    // the first read error
	prefetch sync.WaitGroup
}

// chunk is a chunk of the file that is loaded at most once.
type chunk struct {
	n    int
	once sync.Once
	data []byte
	err  error
}

var _ io.ReaderAt = (*file)(nil)

func openFile(ctx context.Context, files Files, run Run) *file {
	return &file{ctx: ctx, files: files, run: run}
}

// close waits for prefetches to end.
func (f *file) close() { f.prefetch.Wait() }

// errUnread replaces store errors for the parsers, which would otherwise report
// some of them as errors of the file; see cause.
var errUnread = errors.New("the file could not be read from the store")

// cause returns the store's error if reading failed, else err. Results from a
// file that was not read completely are meaningless.
func (f *file) cause(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.failed, err)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: negative offset", off)
	}
	read := 0
	for read < len(p) {
		at := off + int64(read)
		if at >= f.run.Size {
			return read, io.EOF
		}
		data, err := f.chunk(int(at / ChunkSize))
		if err != nil {
			return read, err
		}
		within := at % ChunkSize
		if within >= int64(len(data)) {
			return read, f.fail(fmt.Errorf("chunk %d of the file is too short", at/ChunkSize))
		}
		read += copy(p[read:], data[within:])
	}
	return read, nil
}

// chunk returns chunk n and prefetches the next one.
func (f *file) chunk(n int) ([]byte, error) {
	c, _ := f.cached(n)
	if int64(n+1)*ChunkSize < f.run.Size {
		if next, isNew := f.cached(n + 1); isNew {
			f.prefetch.Go(func() { f.fetch(next) })
		}
	}
	f.fetch(c)
	if c.err != nil {
		return nil, f.fail(c.err)
	}
	return c.data, nil
}

// cached returns the cache entry of chunk n, which is new if there was none.
func (f *file) cached(n int) (c *chunk, isNew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.chunks {
		if c.n == n {
			f.chunks = append(append(f.chunks[:i:i], f.chunks[i+1:]...), c)
			return c, false
		}
	}
	c = &chunk{n: n}
	if len(f.chunks) >= maxChunks {
		f.chunks = f.chunks[1:]
	}
	f.chunks = append(f.chunks, c)
	return c, true
}

func (f *file) fetch(c *chunk) {
	c.once.Do(func() { c.data, c.err = f.files.ReadChunk(f.ctx, f.run, c.n) })
}

// fail records the first error and returns the one for the parsers.
func (f *file) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return errUnread
}
