package chatexport_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// gzipped compresses data.
func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tarred makes a tar.
func tarred(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.data)), Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A tar of many sessions is decompressed once per pass.
func TestTarIsReadInOrder(t *testing.T) {
	t.Parallel()
	var entries []entry
	total := 0
	for i := range 200 {
		data := fmt.Appendf(nil, `{"sessionId":"s-%d","uuid":"u","type":"user","timestamp":"2025-01-01T00:00:00Z","message":{"role":"user","content":"%s"}}`+"\n",
			i, strings.Repeat(fmt.Sprint("word ", i), 2000))
		total += len(data)
		entries = append(entries, entry{name: fmt.Sprintf("./projects/%d.jsonl", i), data: data}, entry{name: fmt.Sprintf("%d.png", i), data: []byte("\x89PNG")})
	}
	// The limit suffices for one pass, but not for a second one.
	limits := chatexport.Limits{Inflated: int64(total) * 3 / 2}
	data := gzipped(t, tarred(t, entries...))
	e := open(t, data, chatexport.Options{Limits: limits})
	got := all(t, e)
	if len(got) != 200 || got[199].ExternalID != "s-199" || got[0].err != nil {
		t.Errorf("%d conversations, the last is %s, want 200 and s-199", len(got), got[len(got)-1].ExternalID)
	}
}

func TestArchivesAreRejected(t *testing.T) {
	t.Parallel()
	good := []byte(simple)
	packed := gzipped(t, good)
	deep := packed
	for range 6 {
		deep = gzipped(t, deep)
	}
	sum := bytes.Clone(packed)
	sum[len(sum)-5] ^= 1
	var many []entry
	for i := range 50 {
		many = append(many, entry{name: fmt.Sprint(i), data: []byte("x")})
	}
	full := tarred(t, entry{name: "a.json", data: good}, entry{name: "b.json", data: good})
	cases := map[string]struct {
		reason string
		data   []byte
		limits chatexport.Limits
		want   string
	}{
		"cut gzip":   {"a truncated upload", packed[:len(packed)-12], chatexport.Limits{}, "incomplete"},
		"checksum":   {"a changed gzip", sum, chatexport.Limits{}, "damaged"},
		"only magic": {"nothing but the magic bytes", []byte("\x1f\x8b\x08"), chatexport.Limits{}, "incomplete"},
		"deep":       {"gzip in gzip in gzip", deep, chatexport.Limits{}, "compressed more than 4 times"},
		"bomb":       {"more data than allowed", gzipped(t, append([]byte(`[{"mapping":{`), bytes.Repeat([]byte(" "), 3<<20)...)), chatexport.Limits{Inflated: 1 << 20}, "zip bomb"},
		"tar bomb":   {"a large file in a tar", gzipped(t, tarred(t, entry{name: "x", data: make([]byte, 3<<20)})), chatexport.Limits{Inflated: 1 << 20}, "zip bomb"},
		"path":       {"a path outside the tar", tarred(t, entry{name: "../../etc/passwd", data: good}), chatexport.Limits{}, `"../../etc/passwd" points outside`},
		"absolute":   {"an absolute path", gzipped(t, tarred(t, entry{name: "/a.json", data: good})), chatexport.Limits{}, "points outside"},
		"entries":    {"too many files", tarred(t, many...), chatexport.Limits{Entries: 20}, "more than 20 files"},
		"cut tar":    {"a tar that ends within a file", full[:600], chatexport.Limits{}, "the file"},
		"header":     {"an invalid header", append(bytes.Clone(full[:1024]), bytes.Repeat([]byte("garbage!"), 128)...), chatexport.Limits{}, "damaged"},
		"no chats":   {"a tar without chats", tarred(t, entry{name: "a.txt", data: []byte("hello")}), chatexport.Limits{}, "no conversations"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chatexport.Open(bytes.NewReader(tc.data), int64(len(tc.data)), chatexport.Options{Limits: tc.limits})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Open = %v, want Invalid with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// Links and empty files in a tar are ignored.
func TestTarLinksAreIgnored(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []*tar.Header{
		{Name: "link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
		{Name: "dir/", Typeflag: tar.TypeDir},
		{Name: "empty.json", Typeflag: tar.TypeReg},
		{Name: "c.json", Typeflag: tar.TypeReg, Size: int64(len(simple))},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, simple); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := all(t, open(t, out.Bytes(), chatexport.Options{})); len(got) != 1 || got[0].File != "c.json" {
		t.Errorf("got %+v, want one conversation of c.json", got)
	}
}

// Errors of the reader are returned as they are for compressed files too.
func TestReaderErrorsOfArchivesPassThrough(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the database is unavailable")
	for _, data := range [][]byte{
		gzipped(t, []byte(simple)), gzipped(t, tarred(t, entry{name: "c.json", data: []byte(simple)})),
		fixture(t, "copilot/history.csv", 0), fixture(t, "gemini/MyActivity.html", 0),
	} {
		for at := range len(data) {
			_, err := chatexport.Open(&failing{data, at, unavailable}, int64(len(data)), chatexport.Options{})
			if err != nil && (!errors.Is(err, unavailable) || fault.Is(err, fault.Invalid)) {
				t.Fatalf("byte %d of %d: Open = %v", at, len(data), err)
			}
		}
	}
}
