package chatexport_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// entry is a file of a zip that a test makes.
type entry struct {
	name   string
	data   []byte
	method uint16
}

// archive makes a zip; entries are deflated unless they say otherwise.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, e := range entries {
		w, err := zw.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err != nil {
			t.Fatalf("add %s: %v", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatalf("write %s: %v", e.name, err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatalf("close zip: %v", err)
	}
	return out.Bytes()
}

func deflated(name string, data []byte) entry {
	return entry{name: name, data: data, method: zip.Deflate}
}

func stored(name string, data []byte) entry {
	return entry{name: name, data: data, method: zip.Store}
}

// fixture reads an export from testdata. A directory is a zip, and so are the
// directories in it that are named *.zip: compressed or stored, as method says.
func fixture(t testing.TB, name string, method uint16) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return archive(t, files(t, path, "", method)...)
}

func files(t testing.TB, dir, prefix string, method uint16) (out []entry) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		path, name := filepath.Join(dir, f.Name()), prefix+f.Name()
		switch {
		case strings.HasSuffix(name, ".zip") && f.IsDir():
			out = append(out, entry{name, archive(t, files(t, path, "", method)...), method})
		case f.IsDir():
			out = append(out, entry{name: name + "/"})
			out = append(out, files(t, path, name+"/", method)...)
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, entry{name, data, method})
		}
	}
	return out
}

func open(t testing.TB, data []byte, o chatexport.Options) *chatexport.Export {
	t.Helper()
	e, err := chatexport.Open(bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return e
}

// outcome is what an export gives for one conversation.
type outcome struct {
	chatexport.Conversation
	err *chatexport.ConversationError
}

// all reads every conversation and holds that they add up.
func all(t testing.TB, e *chatexport.Export) []outcome {
	t.Helper()
	out := make([]outcome, 0, e.Total)
	for c, err := range e.Conversations(nil) {
		var problem *chatexport.ConversationError
		if err != nil && !errors.As(err, &problem) {
			t.Fatalf("conversation %d: %v", len(out), err)
		}
		if c.Ordinal != len(out) {
			t.Errorf("conversation %d has ordinal %d", len(out), c.Ordinal)
		}
		out = append(out, outcome{c, problem})
	}
	if len(out) != e.Total {
		t.Errorf("Total = %d, %d were given", e.Total, len(out))
	}
	return out
}

// generated is an export of n conversations that is made as it is read, so
// that a test of a large one needs neither memory nor disk for it.
type generated struct {
	record []byte // one conversation with room for its number
	at     []int  // where in it its number is written
	n      int
}

const digits = 8

func (g generated) size() int64 { return int64(len(g.record))*int64(g.n) + 1 }

func (g generated) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < g.size() {
		i, within := int(off/int64(len(g.record))), int(off%int64(len(g.record)))
		if i == g.n {
			p[n] = ']'
			return n + 1, io.EOF
		}
		part := copy(p[n:], g.record[within:])
		for _, at := range g.at {
			for d, v := digits-1, i; d >= 0; d, v = d-1, v/10 {
				if k := at + d - within; k >= 0 && k < part {
					p[n+k] = byte('0' + v%10)
				}
			}
		}
		if i == 0 && within == 0 {
			p[n] = '['
		}
		n, off = n+part, off+int64(part)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// generate makes an export of ChatGPT of about size bytes.
func generate(size, conversation int) generated {
	const mark = "########"
	var b strings.Builder
	b.WriteString(`,{"title":"Conversation ` + mark + `","create_time":1700000000.5,"update_time":1700000600,"mapping":{"root":{"message":null,"parent":null}`)
	parent := "root"
	for i := 0; b.Len() < conversation; i++ {
		id := fmt.Sprintf("n%06d", i)
		b.WriteString(`,"` + id + `":{"id":"` + id + `","parent":"` + parent + `","children":[],"message":{"id":"` + id +
			`","author":{"role":"user"},"create_time":1700000000,"weight":1,"content":{"content_type":"text","parts":["` +
			strings.Repeat(`a line of text\nwith \"quotes\" and ünïcode `, 20) + `"]},"metadata":{"citations":[{"a":[1,2,{"b":"c"}]}]}}}`)
		parent = id
	}
	b.WriteString(`},"current_node":"` + parent + `","conversation_id":"c-` + mark + `"}`)
	g := generated{record: []byte(b.String())}
	for at := 0; ; {
		i := bytes.Index(g.record[at:], []byte(mark))
		if i < 0 {
			break
		}
		g.at = append(g.at, at+i)
		at += i + len(mark)
	}
	g.n = size / len(g.record)
	return g
}
