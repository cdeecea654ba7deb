package chatexport_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

const (
	large = 200 << 20
	// costly is the size of the exports that contain HTML. It is also twice the limit, and their conversion needs
	// most of the processor time of these tests.
	costly = large / 2
	// heapLimit is the heap that reading an export of any size may use. The test sets
	// it as the memory limit of the runtime, like GOMEMLIMIT in production.
	heapLimit = 48 << 20
)

// Not parallel: it measures the heap of the process.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	g := generate(large, 64<<10)
	path := filepath.Join(t.TempDir(), "export.zip")
	pack(t, path, g)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	z, err := os.Open(packGzip(t, g))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	compressed, err := z.Stat()
	if err != nil {
		t.Fatal(err)
	}
	type export interface {
		io.ReaderAt
		size() int64
	}
	cases := map[string]struct {
		reason string
		make   func() export
		limit  uint64 // bytes of heap in addition to the export itself
		failed int
	}{
		"json":     {"conversations of ordinary size", func() export { return g }, heapLimit, 0},
		"zip":      {"inflated while reading, from a nested zip", func() export { return file{f, info.Size()} }, heapLimit, 0},
		"giant":    {"a conversation over the size limit is skipped, not buffered", func() export { return giant(large) }, heapLimit, 1},
		"large":    {"the largest allowed conversation is buffered about twice", func() export { return giant(31 << 20) }, 3 * 32 << 20, 0},
		"session":  {"a session over the limit is dropped when it exceeds it", func() export { return session() }, 3 * 32 << 20, 1},
		"activity": {"groups of activities", func() export { return activities() }, heapLimit, 0},
		"gzip":     {"decompressed while reading", func() export { return file{z, compressed.Size()} }, heapLimit, 0},
		"csv":      {"converted while reading", func() export { return table() }, heapLimit, 0},
		"html":     {"converted while reading", func() export { return page() }, heapLimit, 0},
		"messages": {"many messages need no more", func() export { return generate(31<<20, 30<<20) }, 3 * 32 << 20, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := tc.make()
			runtime.GC()
			before := inUse()
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(before + tc.limit)))
			peak := watch(t)
			e, err := chatexport.Open(data, data.size(), chatexport.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n, failed := 0, 0
			for _, err := range e.Conversations(nil) {
				if n++; err != nil {
					failed++
				}
			}
			if n != e.Total {
				t.Errorf("%s: %d conversations, want %d", tc.reason, n, e.Total)
			}
			if failed != tc.failed {
				t.Errorf("%s: %d conversations failed, want %d", tc.reason, failed, tc.failed)
			}
			got := peak() - before
			t.Logf("%d conversations, peak %d MiB", n, got>>20)
			if got > tc.limit {
				t.Errorf("%s: the heap reached %d MiB, want at most %d", tc.reason, got>>20, tc.limit>>20)
			}
		})
	}
}

// numberedValues returns an export of size bytes of values with a number in place of each mark.
func numberedValues(size int, record string) generated {
	g := generated{record: []byte(record)}
	for at := 0; ; {
		i := bytes.Index(g.record[at:], []byte("########"))
		if i < 0 {
			break
		}
		g.at = append(g.at, at+i)
		at += i + digits
	}
	g.n = size / len(g.record)
	return g
}

// session is a session of Claude Code in one array.
func session() generated {
	return numberedValues(large, `,{"sessionId":"s","uuid":"u-########","type":"user","message":{"role":"user","content":"`+strings.Repeat("some text ", 500)+`"}}`)
}

// activities are activities of Gemini, each hours after the previous one.
func activities() generated {
	return numberedValues(costly, `,{"header":"Gemini Apps","title":"Prompted ########","time":########0000,"safeHtmlItem":[{"html":"<p>`+
		strings.Repeat("some <b>text</b> ", 500)+`</p>"}]}`)
}

// repeated is a file of a head, n copies of a part, and a tail.
type repeated struct {
	head, part, tail string
	n                int64
}

func (r repeated) size() int64 {
	return int64(len(r.head)) + r.n*int64(len(r.part)) + int64(len(r.tail))
}

func (r repeated) ReadAt(p []byte, off int64) (int, error) {
	n, middle := 0, r.n*int64(len(r.part))
	for n < len(p) && off < r.size() {
		var part string
		switch at := off - int64(len(r.head)); {
		case at < 0:
			part = r.head[off:]
		case at < middle:
			part = r.part[at%int64(len(r.part)):]
		default:
			part = r.tail[at-middle:]
		}
		k := copy(p[n:], part)
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// table is an activity history of Copilot with small conversations.
func table() repeated {
	row := ",2025-01-01T00:00:00,Human,\"" + strings.Repeat("some \"\"text\"\"\n", 100) + "\"\n"
	return repeated{head: "Conversation,Time,Author,Message\n", part: "A" + row + "B" + row, n: large / 4 / int64(2*len(row))}
}

// page is a page of activities without times, each a conversation.
func page() repeated {
	cell := `<div class="outer-cell"><div class="header-cell"><p>Gemini Apps</p></div><div class="content-cell">Prompted x<br>1 x 2025 10:00:00<br><p>` +
		strings.Repeat("some <b>text</b> ", 500) + `</p></div></div>`
	return repeated{head: "<html><body>", part: cell, tail: "</body></html>", n: costly / int64(len(cell))}
}

// packGzip writes an export as gzip and returns its path.
func packGzip(t *testing.T, g generated) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "export.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(f)
	if _, err := io.Copy(w, io.NewSectionReader(g, 0, g.size())); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{w, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return f.Name()
}

// file is an export on disk.
type file struct {
	io.ReaderAt
	bytes int64
}

func (f file) size() int64 { return f.bytes }

// giant is an export of one conversation with one text of the given number of bytes.
type giant int64

const (
	giantHead = `[{"conversation_id":"c","mapping":{"m":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["`
	giantTail = `"]}}}},"current_node":"m"}]`
)

func (g giant) size() int64 { return int64(len(giantHead)) + int64(g) + int64(len(giantTail)) }

func (g giant) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		switch at := off + int64(i); {
		case at < int64(len(giantHead)):
			p[i] = giantHead[at]
		case at < int64(len(giantHead))+int64(g):
			p[i] = 'a'
		case at < g.size():
			p[i] = giantTail[at-int64(len(giantHead))-int64(g)]
		default:
			return i, io.EOF
		}
	}
	return len(p), nil
}

// inUse returns the bytes of the heap that are in use.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// watch samples the heap until peak is called, which returns the maximum in use.
func watch(t *testing.T) (peak func() uint64) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, inUse())
			select {
			case <-stop:
				done <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-done }
}

// pack writes an export as a compressed zip in a compressed zip without buffering it.
func pack(t *testing.T, path string, g generated) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	outer := zip.NewWriter(f)
	w, err := outer.Create("inner.zip")
	if err != nil {
		t.Fatal(err)
	}
	inner := zip.NewWriter(w)
	if w, err = inner.Create("conversations.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, io.NewSectionReader(g, 0, g.size())); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{inner, outer, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkExport(b *testing.B) {
	data := generate(large, 64<<10)
	b.Run("open", func(b *testing.B) {
		b.SetBytes(data.size())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := chatexport.Open(data, data.size(), chatexport.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("conversations", func(b *testing.B) {
		e, err := chatexport.Open(data, data.size(), chatexport.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(data.size())
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range e.Conversations(nil) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// The generated export has the properties that other tests rely on.
func TestGenerated(t *testing.T) {
	t.Parallel()
	g := generate(1<<20, 10<<10)
	e, err := chatexport.Open(g, g.size(), chatexport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range all(t, e) {
		if want := fmt.Sprintf("c-%08d", i); o.err != nil || o.ExternalID != want || len(o.Messages) < 5 ||
			!strings.Contains(o.Messages[0].Text, "ünïcode") {
			t.Fatalf("conversation %d is %+v", i, o)
		}
	}
	if e.Total != g.n {
		t.Errorf("Total = %d, want %d", e.Total, g.n)
	}
}
