package chatexport_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

const simple = `[{"id":"c","mapping":{"m":{"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}},"current_node":"m"}]`

// A damaged or hostile file, or one that is not an export, is rejected as a whole before
// any conversation is returned, with an error that states the reason.
func TestOpenRejects(t *testing.T) {
	t.Parallel()
	good := archive(t, deflated("conversations.json", []byte(simple)))
	deep := good
	for i := range 6 {
		deep = archive(t, deflated(fmt.Sprintf("%d.zip", i), deep))
	}
	cases := map[string]struct {
		reason string
		data   []byte
		o      chatexport.Options
		want   string
	}{
		"empty":        {"nothing was uploaded", nil, chatexport.Options{}, "looks like an empty file"},
		"text":         {"another kind of file", []byte("Dear diary"), chatexport.Options{}, "looks like text"},
		"other json":   {"JSON that is not an export", []byte(`[{"name":"Alice"}]`), chatexport.Options{}, "no conversations of ChatGPT, Claude, Gemini"},
		"scalars":      {"JSON without objects", []byte(`[1,2,3]`), chatexport.Options{}, "no conversations"},
		"empty list":   {"an empty export does not identify a platform", []byte(`[]`), chatexport.Options{}, "no conversations"},
		"utf-16":       {"the wrong encoding", []byte("\xff\xfe[\x00"), chatexport.Options{}, "text in UTF-16; save it as UTF-8"},
		"no platform":  {"an unknown platform", []byte(simple), chatexport.Options{Platform: "eliza"}, "platform must be one of chatgpt, claude, gemini"},
		"mismatch":     {"the zip is not from the requested platform", good, chatexport.Options{Platform: chatexport.Claude}, "no conversations of Claude"},
		"manifest":     {"the list of zips instead of the zips", []byte(`{"files":[{"url":"https://example.test/conversations-000.zip"}]}`), chatexport.Options{}, "download the zips that it lists"},
		"cut json":     {"a truncated upload", []byte(simple[:len(simple)-9]), chatexport.Options{}, "ends unexpectedly"},
		"cut list":     {"an upload truncated between two conversations", []byte(strings.TrimSuffix(simple, "]") + ","), chatexport.Options{}, "ends unexpectedly after conversation 1"},
		"broken list":  {"invalid data between two conversations", []byte(strings.TrimSuffix(simple, "]") + ` oops {}]`), chatexport.Options{}, "invalid JSON after conversation 1"},
		"deep json":    {"brackets 100,000 deep", []byte(strings.Repeat("[", 100_000)), chatexport.Options{}, "no conversations"},
		"cut zip":      {"a zip without its central directory", good[:len(good)-30], chatexport.Options{}, "damaged or incomplete"},
		"zip of dots":  {"only the magic bytes", []byte("PK\x03\x04............"), chatexport.Options{}, "damaged or incomplete"},
		"flipped bit":  {"a checksum mismatch", flip(t), chatexport.Options{}, "conversations.json: the"},
		"path":         {"a path outside the zip", archive(t, deflated("../../etc/passwd", []byte("x"))), chatexport.Options{}, `"../../etc/passwd" points outside`},
		"windows path": {"a Windows path outside the zip", archive(t, deflated(`a\..\..\b`, []byte("x"))), chatexport.Options{}, "points outside"},
		"drive":        {"a path with a drive letter", archive(t, deflated(`C:evil`, []byte("x"))), chatexport.Options{}, "points outside"},
		"absolute":     {"an absolute path", archive(t, deflated("/conversations.json", []byte(simple))), chatexport.Options{}, "points outside"},
		"encrypted":    {"a zip with a password", encrypted(good), chatexport.Options{}, "conversations.json is encrypted"},
		"deep zips":    {"zips in zips in zips", deep, chatexport.Options{}, "more than 4 deep"},
		"entries":      {"too many files", many(t, 300), chatexport.Options{Limits: chatexport.Limits{Entries: 200}}, "more than 200 files"},
		"directory":    {"a file list of many MiB", many(t, 20_000), chatexport.Options{Limits: chatexport.Limits{Directory: 1}}, "the file list is larger"},
		"too many":     {"more conversations than the limit", []byte(simple[:len(simple)-1] + "," + simple[1:]), chatexport.Options{Limits: chatexport.Limits{Conversations: 1}}, "more than 1 conversations"},
		"broken inner": {"a truncated part of a split export", archive(t, deflated("a.zip", good), deflated("b.zip", good[:len(good)-30])), chatexport.Options{}, "b.zip: the zip is damaged or incomplete"},
		"2 GiB claim":  {"a header that claims more than the content", claim(t, 2<<30), chatexport.Options{}, "conversations.json: the file is incomplete"},
		"tiny claim":   {"a header that claims less than the content", claim(t, 10), chatexport.Options{}, "conversations.json: the"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chatexport.Open(bytes.NewReader(tc.data), int64(len(tc.data)), tc.o)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Open = %v, want Invalid with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// flip returns a zip with one bit of a file's content changed.
func flip(t *testing.T) []byte {
	data := archive(t, stored("conversations.json", []byte(simple)))
	data[bytes.Index(data, []byte("hi"))] ^= 1
	return data
}

// encrypted sets the flag that a zip's file is encrypted.
func encrypted(data []byte) []byte {
	data = bytes.Clone(data)
	data[bytes.Index(data, []byte("PK\x01\x02"))+8] |= 1
	return data
}

func many(t *testing.T, n int) []byte {
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = stored(fmt.Sprintf("%d.png", i), nil)
	}
	return archive(t, entries...)
}

// claim returns a zip whose header claims that its file is size bytes large.
func claim(t *testing.T, size uint64) []byte {
	t.Helper()
	var packed bytes.Buffer
	fw, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(fw, simple); err != nil {
		t.Fatal(err)
	}
	if err := fw.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	w, err := zw.CreateRaw(&zip.FileHeader{
		Name: "conversations.json", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(simple)),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: size,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zeros is an endless file with a compression ratio of about 1000.
type zeros struct{ b byte }

func (z zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = z.b
	}
	return len(p), nil
}

// bomb returns a zip of one file that inflates to start and n spaces.
func bomb(t *testing.T, start string, n int64) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	w, err := zw.Create("conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, io.MultiReader(strings.NewReader(start), io.LimitReader(zeros{' '}, n))); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestZipBombsAreRejected(t *testing.T) {
	t.Parallel()
	const size = 300 << 20
	plain := bomb(t, `[{"mapping":{`, size)
	cases := map[string]struct {
		reason string
		data   []byte
		limits chatexport.Limits
	}{
		"ratio":       {"an implausible compression ratio", plain, chatexport.Limits{}},
		"in a zip":    {"nested in a compressed zip", archive(t, deflated("x.zip", plain)), chatexport.Limits{}},
		"stored":      {"nested in a stored zip", archive(t, stored("x.zip", plain)), chatexport.Limits{}},
		"total":       {"over the configured limit", plain, chatexport.Limits{Inflated: 1 << 20}},
		"in a string": {"within a string", bomb(t, `[{"mapping":{"m":{"message":{"content":{"parts":["`, size), chatexport.Limits{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chatexport.Open(bytes.NewReader(tc.data), int64(len(tc.data)), chatexport.Options{Limits: tc.limits})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "zip bomb") {
				t.Errorf("%s: Open = %v, want Invalid with \"zip bomb\"", tc.reason, err)
			}
		})
	}
}

// A nested zip whose files are out of order must be inflated again for each of them. That
// is supported up to the limit.
func TestEntriesOutOfOrderAreBounded(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{})
	var entries []entry
	for i := range 100 {
		noise := make([]byte, 32<<10)
		random.Read(noise)
		entries = append(entries, deflated(fmt.Sprintf("%03d.json", i),
			fmt.Appendf(nil, `[{"id":"c-%d","title":"%x","mapping":{}}]`, i, noise)))
	}
	inner := archive(t, entries...)
	reverse(inner)
	data := archive(t, deflated("x.zip", inner))
	if got := len(all(t, open(t, data, chatexport.Options{}))); got != 100 {
		t.Errorf("%d conversations, want 100", got)
	}
	_, err := chatexport.Open(bytes.NewReader(data), int64(len(data)),
		chatexport.Options{Limits: chatexport.Limits{Inflated: 64 << 20}})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("Open under 64 MiB = %v, want Invalid", err)
	}
}

// reverse reverses the order of a zip's central directory.
func reverse(data []byte) {
	end := bytes.LastIndex(data, []byte("PK\x05\x06"))
	start := int(binary.LittleEndian.Uint32(data[end+16:]))
	var records [][]byte
	for at := start; at < end; {
		n := 46 + int(binary.LittleEndian.Uint16(data[at+28:])) + int(binary.LittleEndian.Uint16(data[at+30:]))
		records = append(records, bytes.Clone(data[at:at+n]))
		at += n
	}
	for _, record := range slices.Backward(records) {
		start += copy(data[start:], record)
	}
}

// An invalid conversation does not affect the others.
func TestInvalidConversationIsRejectedAlone(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return strings.Replace(simple, `"hi"`, s, 1) }
	nodes := strings.Replace(simple, `"mapping":{`, `"mapping":{`+strings.Repeat(`"x":{},`, 3)+numbered(20), 1)
	cases := map[string]struct {
		reason, data string
		limits       chatexport.Limits
		want         string
	}{
		"giant":          {"a text over the limit", text(`"` + strings.Repeat("long ", 5000) + `"`), chatexport.Limits{Conversation: 10_000}, "too large"},
		"giant escapes":  {"the limit is just after a backslash", text(`"` + strings.Repeat(`\"`, 5000) + `"`), chatexport.Limits{Conversation: 1001}, "too large"},
		"giant escapes2": {"the limit is one byte later", text(`"` + strings.Repeat(`\"`, 5000) + `"`), chatexport.Limits{Conversation: 1002}, "too large"},
		"deep":           {"brackets 1,000 deep", text(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), chatexport.Limits{}, "nested too deeply"},
		"deep objects":   {"nesting in a skipped value", text(strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)), chatexport.Limits{}, "nested too deeply"},
		"controls":       {"a text that needs six times its size in an export of the account", text(`"x` + strings.Repeat("\x01", 3000) + `"`), chatexport.Limits{Conversation: 10_000}, "the texts are too large"},
		"messages":       {"more messages than the limit", nodes, chatexport.Limits{Messages: 10}, "too many messages"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The invalid conversation is between two valid ones.
			body := strings.Trim(tc.data, "[]")
			whole := strings.Trim(simple, "[]")
			data := "[" + strings.Replace(whole, `"c"`, `"c1"`, 1) + "," + body + "," + strings.Replace(whole, `"c"`, `"c2"`, 1) + "]"
			got := all(t, open(t, []byte(data), chatexport.Options{Limits: tc.limits}))
			if len(got) != 3 {
				t.Fatalf("%s: %d conversations, want 3: %+v", tc.reason, len(got), got)
			}
			for _, i := range []int{0, 2} {
				if got[i].err != nil {
					t.Fatalf("%s: valid conversation %d: %v", tc.reason, i+1, got[i].err)
				}
			}
			if got[2].ExternalID != "c2" {
				t.Fatalf("%s: last conversation is %q, want c2", tc.reason, got[2].ExternalID)
			}
			err := got[1].err
			if err == nil || err.Skipped || !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "the file: conversation 2") {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":{},`, i)
	}
	return b.String()
}

// Errors of the reader are returned as they are, not as an invalid file.
func TestReaderErrorsPassThrough(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the database is unavailable")
	for _, data := range [][]byte{[]byte(simple), archive(t, deflated("a.zip", archive(t, deflated("conversations.json", []byte(simple)))))} {
		for at := range len(data) {
			_, err := chatexport.Open(&failing{data, at, unavailable}, int64(len(data)), chatexport.Options{})
			if err != nil && (!errors.Is(err, unavailable) || fault.Is(err, fault.Invalid)) {
				t.Fatalf("byte %d of %d: Open = %v", at, len(data), err)
			}
		}
	}
}

// failing is a reader that fails at one byte.
type failing struct {
	data []byte
	at   int
	err  error
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if int(off) <= f.at && f.at < int(off)+len(p) {
		return 0, f.err
	}
	return bytes.NewReader(f.data).ReadAt(p, off)
}
