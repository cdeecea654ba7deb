package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

var errGone = errors.New("the database is gone")

// failing fails at its conversations.
type failing struct{ box }

func (failing) Messages() iter.Seq2[account.Message, error] {
	return func(yield func(account.Message, error) bool) { yield(account.Message{}, errGone) }
}

// part is a file of a zip.
type part struct{ name, text string }

// parts returns the files of the small account.
func parts(t testing.TB) []part {
	t.Helper()
	file := written(t, small())
	zr, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out []part
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, part{f.Name, string(text)})
	}
	return out
}

func zipped(t testing.TB, list []part) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, p := range list {
		w, err := zw.Create(p.name)
		if err == nil {
			_, err = io.WriteString(w, p.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(file []byte, limits Limits) error {
	_, err := Open(bytes.NewReader(file), int64(len(file)), limits)
	return err
}

// A modified file is rejected with the reason and the position.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	const m, c = `0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07`, `0196b2f5-0a77-7d21-b1c4-94e2f7a83d15`
	for name, tc := range map[string]struct {
		file, old, now string // now takes the place of old
		says           string
	}{
		"no manifest":                     {manifestFile, "", "gone", "not a Mnemo export"},
		"other manifest":                  {manifestFile, "mnemo-export", "other-export", "not a Mnemo export"},
		"manifest not JSON":               {manifestFile, "{", "", "not a Mnemo export"},
		"newer format version":            {manifestFile, `"version": 1`, `"version": 2`, "has format version 2"},
		"negative count":                  {manifestFile, `"memories.jsonl": 1`, `"memories.jsonl": -1`, "memories.jsonl may have up to"},
		"missing line":                    {manifestFile, `"messages.jsonl": 2`, `"messages.jsonl": 3`, "messages.jsonl has 2 lines"},
		"missing file":                    {versionsFile, "", "gone", "memory-versions.jsonl is missing"},
		"invalid JSON":                    {memoriesFile, `{"id"`, `{"id`, "memories.jsonl line 1 is not valid JSON"},
		"wrong type":                      {memoriesFile, `"version":2`, `"version":"2"`, "memories.jsonl line 1 is not valid JSON"},
		"not UTF-8":                       {memoriesFile, "aisle", "\xff", "memories.jsonl line 1 is not valid JSON"},
		"two JSON values":                 {memoriesFile, `{"id"`, `{}{"id"`, "memories.jsonl line 1 is not valid JSON"},
		"empty line":                      {messagesFile, "\n", "\n\n", "messages.jsonl line 2 is not valid JSON"},
		"deep nesting":                    {memoriesFile, `{"id"`, `{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"id"`, "memories.jsonl line 1 is not valid JSON"},
		"line too long":                   {memoriesFile, "aisle", strings.Repeat("x", maxLine), "memories.jsonl line 1 is longer than"},
		"text too long":                   {memoriesFile, "aisle", strings.Repeat("x", 32769), "text must be at most 32768 bytes"},
		"blank text":                      {memoriesFile, "aisle", " ", "text is required"},
		"invisible text":                  {memoriesFile, "aisle", "\u200b\u2800", "text is required"},
		"direction in a name":             {bucketsFile, "General", "General\u202e", "name must not contain characters that change the direction of text"},
		"U+0000":                          {memoriesFile, "aisle", `a\u0000`, "text must not contain the character U+0000"},
		"no id":                           {memoriesFile, m, "x", "memories.jsonl line 1: id must be a UUID"},
		"id in upper case":                {memoriesFile, m, strings.ToUpper(m), "id must be a UUID in lower case"},
		"no creation time":                {memoriesFile, `"createdAt"`, `"x"`, "createdAt is required"},
		"merged into no id":               {memoriesFile, `"version":2`, `"version":2,"mergedInto":"x"`, "mergedInto must be a UUID"},
		"merged at no time":               {memoriesFile, `"version":2`, `"version":2,"mergedInto":"` + m + `"`, "mergedAt is required"},
		"version zero":                    {memoriesFile, `"version":2`, `"version":0`, "version must be 1 to"},
		"unknown bucket":                  {memoriesFile, `"bucketId":7`, `"bucketId":8`, "is in bucket 8, which is not in buckets.jsonl"},
		"bucket id zero":                  {bucketsFile, `"id":7`, `"id":0`, "buckets.jsonl line 1: id must be 1 to"},
		"version of unknown memory":       {versionsFile, m, c, "records without an owner in memories.jsonl"},
		"version not below the current":   {versionsFile, `"version":1`, `"version":2`, "version 2 of memory"},
		"unknown status":                  {conversationsFile, `"active"`, `"deleted"`, `status must be "active"`},
		"invalid platform":                {conversationsFile, `"custom"`, `"a b"`, "platform must be 1 to 100 of"},
		"empty platform id":               {conversationsFile, `"x"`, `""`, "platformConversationId is required"},
		"more messages than stated":       {conversationsFile, `"messageCount":2`, `"messageCount":1`, "has 2 messages, but conversations.jsonl states 1"},
		"unknown sender":                  {messagesFile, `"human"`, `"pope"`, `sender must be "human"`},
		"duplicate message id":            {messagesFile, `"id":"2"`, `"id":"1"`, "message 1 of conversation"},
		"gap in message indexes":          {messagesFile, `"message_index":1`, `"message_index":2`, "message 2 of conversation"},
		"message of unknown conversation": {messagesFile, c, m, "has 0 messages"},
		"year zero":                       {messagesFile, "2025-05-09T12", "0000-05-09T12", "timestamp must be in the years 1 to 9999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := parts(t)
			for i, p := range list {
				if p.name == tc.file && tc.old == "" {
					list[i].name = tc.now
				} else if p.name == tc.file {
					list[i].text = strings.Replace(p.text, tc.old, tc.now, 1)
				}
			}
			err := open(zipped(t, list), Limits{})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want Invalid saying %q", err, tc.says)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestHostileZips(t *testing.T) {
	t.Parallel()
	good := zipped(t, parts(t))
	if err := open(good, Limits{}); err != nil {
		t.Fatal(err)
	}
	bomb := parts(t)
	for i, p := range bomb {
		if p.name == memoriesFile {
			bomb[i].text = strings.Replace(p.text, "\n", strings.Repeat(" ", 900<<10)+"\n", 1)
		}
	}
	long := parts(t)
	long[len(long)-1].text = strings.Replace(long[len(long)-1].text, "Which", strings.Repeat("x", maxLine+1000), 1)
	for name, tc := range map[string]struct {
		file   []byte
		limits Limits
		says   string
	}{
		"empty file":                       {nil, Limits{}, "the zip is damaged or incomplete"},
		"truncated":                        {good[:len(good)/2], Limits{}, "the zip is damaged or incomplete"},
		"path outside the zip":             {zipped(t, append(parts(t), part{"../../etc/passwd", ""})), Limits{}, "points outside the zip"},
		"duplicate name":                   {zipped(t, append(parts(t), part{messagesFile, ""})), Limits{}, "duplicate file name messages.jsonl"},
		"too many files":                   {good, Limits{Zip: chatexport.Limits{Entries: 3}}, "more than 3 files"},
		"zip bomb":                         {zipped(t, bomb), Limits{Zip: chatexport.Limits{Inflated: 1 << 18}}, "looks like a zip bomb"},
		"messages exceed the memory limit": {good, Limits{Held: 400}, "exceed"},
		"message exceeds the memory limit": {zipped(t, long), Limits{Held: 600}, "messages.jsonl line 1 is longer than 1049176 bytes"},
		"too many buckets":                 {good, Limits{Buckets: -1}, "buckets.jsonl may have up to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(tc.file, tc.limits)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want Invalid saying %q", err, tc.says)
			}
		})
	}
	for n := 0; n < len(good); n += 5 {
		bad := bytes.Clone(good)
		bad[n] ^= 0x55
		if err := open(bad, Limits{}); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("byte %d changed: %v is not Invalid", n, err)
		}
	}
}

// An error names every invalid line up to a bound. On request the lines are omitted with what belongs to them, and the
// other records are read twice with the same result.
func TestInvalidLines(t *testing.T) {
	t.Parallel()
	const memory, conversation = "0196b2f4-6d1e-7c3a-9f5e-%012d", "0196b2f5-0a77-7d21-b1c4-%012d"
	var b box
	b.buckets = []account.Bucket{{ID: 7, Name: "General", Default: true, CreatedAt: noon}, {ID: 8, CreatedAt: noon}} // no name
	for n := range 4 {
		m := account.Memory{ID: fmt.Sprintf(memory, n), Bucket: 7 + int64(n%2), Text: "aisle", Version: 3, CreatedAt: noon, UpdatedAt: noon, EditedAt: noon}
		if n == 2 {
			m.Text = " "
		}
		b.memories = append(b.memories, m)
		for v := range 2 {
			b.versions = append(b.versions, account.Version{Memory: m.ID, Version: v + 1, Text: strings.Repeat("window", v+n%2), CreatedAt: noon})
		}
		c := chat.Conversation{ID: fmt.Sprintf(conversation, n), ExternalID: fmt.Sprint(n), Platform: "custom", Status: chat.Active, MessageCount: 3, CreatedAt: noon}
		if n == 1 {
			c.Platform = "a b"
		}
		b.conversations = append(b.conversations, c)
		for i := range 3 {
			b.messages = append(b.messages, account.Message{Conversation: c.ID, Message: chat.Message{Index: i, ExternalID: fmt.Sprint(i), Sender: chat.Human}})
		}
	}
	b.messages[10].Sender = "pope"
	file := written(t, b)
	const says = "buckets.jsonl line 2: name is required and must not be blank; " +
		"memory-versions.jsonl line 1: text is required and must not be blank; memory-versions.jsonl line 5: text is required and must not be blank; " +
		"memories.jsonl line 3: text is required and must not be blank; " +
		`conversations.jsonl line 2: platform must be 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.'; ` +
		`messages.jsonl line 11: sender must be "human", "assistant", "system" or "tool"`
	if err := open(file, Limits{}); !fault.Is(err, fault.Invalid) || !sameParts(err.Error(), says) {
		t.Errorf("the error is %v, want %s", err, says)
	}
	a, err := Open(bytes.NewReader(file), int64(len(file)), Limits{SkipInvalid: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.InvalidLines(); !sameParts(got, says) {
		t.Errorf("the invalid lines are %s, want %s", got, says)
	}
	var got []string
	for h, err := range a.MemoryHistories() {
		got = append(got, fmt.Sprint(h.ID[35:], len(h.Earlier), err))
	}
	for c, err := range a.Transcripts() {
		got = append(got, fmt.Sprint(c.ID[35:], len(c.Messages), err))
		for i, m := range c.Messages {
			if m.Index != i {
				t.Errorf("message %d of conversation %s has the index %d", i, c.ID, m.Index)
			}
		}
	}
	if want := []string{"01 <nil>", "12 <nil>", "32 <nil>", "03 <nil>", "23 <nil>", "32 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("the records are %v, want %v", got, want)
	}
}

// sameParts reports whether two lists of lines are equal in any order: files are read side by side.
func sameParts(a, b string) bool {
	x, y := strings.Split(a, "; "), strings.Split(b, "; ")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// The number of invalid lines that are named, and of those that can be omitted, is limited.
func TestManyInvalidLines(t *testing.T) {
	t.Parallel()
	for n, says := range map[int]string{21: "; and 1 others", 1001: "; and 980 others; more than 1000 lines are invalid"} {
		b := box{buckets: []account.Bucket{{ID: 7, Name: "General", Default: true, CreatedAt: noon}}, memories: make([]account.Memory, n)}
		file := written(t, b)
		if err := open(file, Limits{}); err == nil || !strings.HasSuffix(err.Error(), says) || len(err.Error()) > 10_000 {
			t.Errorf("%d invalid lines: %v, want the end %q", n, err, says)
		}
		if err := open(file, Limits{SkipInvalid: true}); (err == nil) != (n <= maxInvalid) {
			t.Errorf("%d invalid lines omitted: %v", n, err)
		}
	}
}

// Times that older versions stored for conversations and messages without one are absent.
func TestZeroTimesAreAbsent(t *testing.T) {
	t.Parallel()
	b := small()
	b.conversations[0].CreatedAt, b.conversations[0].UpdatedAt, b.messages[0].CreatedAt = time.Time{}, time.Time{}, time.Time{}
	if err := open(written(t, b), Limits{}); err != nil {
		t.Error(err)
	}
}

// A line has room for the largest message that is stored: JSON needs twice the size of line breaks, quotes and U+2028.
func TestLinesHoldTheLargestMessage(t *testing.T) {
	t.Parallel()
	b := small()
	b.messages[0].Text = strings.Repeat("\n\"\u2028", 1000)
	envelope := len(parts(t)[5].text)
	if got, most := len(written(t, b))-len(written(t, small())), 2*len(b.messages[0].Text); got > most {
		t.Errorf("the export grew by %d bytes, want at most %d", got, most)
	}
	if got, want := (Limits{}).withDefaults().line(messagesFile), 2*chat.MaxConversation+envelope; got < want {
		t.Errorf("a line has at most %d bytes, want at least %d", got, want)
	}
}

// No content of a file makes its reader use more memory than a multiple of the limit of a record. Not parallel: it
// measures the heap of the process, with the allowed heap as the memory limit of the runtime.
func TestHostileContentNeedsBoundedMemory(t *testing.T) {
	const held = 4 << 20
	const allowed = 8 * held
	line := func(n int, format string) string {
		return strings.Repeat(fmt.Sprintf(format, strings.Repeat("a", 1000)), n)
	}
	m, c := small().memories[0].ID, small().conversations[0].ID
	numbered := func(first int, format string) string {
		var b strings.Builder
		for n := range 300_000 {
			fmt.Fprintf(&b, format, n+first)
		}
		return b.String()
	}
	list := func(part string, size int) string {
		return "[" + strings.Repeat(part+",", size/(len(part)+1)) + part + "]"
	}
	for name, tc := range map[string]struct{ file, lines string }{
		"long ids":        {memoriesFile, strings.Repeat(`{"id":"`+strings.Repeat("a", maxLine-100)+"\"}\n", 100)},
		"ids":             {conversationsFile, line(1000, `{"id":"%s"}`+"\n")},
		"tags":            {memoriesFile, strings.Repeat(`{"tags":`+list(`""`, maxLine-100)+"}\n", 3)},
		"deep metadata":   {memoriesFile, strings.Repeat(`{"customMetadata":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"}\n", 100)},
		"wide metadata":   {memoriesFile, strings.Repeat(`{"customMetadata":`+list(`{}`, maxLine-100)+"}\n", 3)},
		"tiny versions":   {versionsFile, numbered(1, `{"memoryId":"`+m+`","version":%d,"text":"a","createdAt":"2025-05-09T12:00:00Z"}`+"\n")},
		"tiny messages":   {messagesFile, numbered(0, `{"conversationId":"`+c+`","message_index":%[1]d,"id":"%[1]d","sender":"human"}`+"\n")},
		"giant message":   {messagesFile, `{"conversationId":"` + c + `","id":"a","sender":"human","text":"` + strings.Repeat(`\u2028`, held/7) + "\"}\n"},
		"unknown members": {messagesFile, `{"x":` + list(`{}`, held) + "}\n"},
		"no lines":        {messagesFile, strings.Repeat("\n", 16*held)},
	} {
		t.Run(name, func(t *testing.T) {
			files := parts(t)
			for i := range files {
				switch files[i].name {
				case tc.file:
					files[i].text = tc.lines
				case manifestFile:
					files[i].text = strings.Replace(files[i].text, `"`+tc.file+`": `, `"`+tc.file+`": 10000`, 1)
				case memoriesFile:
					files[i].text = strings.Replace(files[i].text, `"version":2`, `"version":1000000`, 1)
				case conversationsFile:
					files[i].text = strings.Replace(files[i].text, `"messageCount":2`, `"messageCount":1000000`, 1)
				}
			}
			file := zipped(t, files)
			for _, skip := range []bool{false, true} {
				var err error
				peak := heapPeak(allowed, func() { err = open(file, Limits{Held: held, SkipInvalid: skip}) })
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%v, want Invalid", err)
				}
				t.Logf("peak %d KiB: %.80v", peak>>10, err)
				if peak > allowed {
					t.Errorf("the heap grew by %d KiB, want at most %d", peak>>10, allowed>>10)
				}
			}
		})
	}
}

// heapPeak returns by how much the heap grows while a function runs, with the allowed growth as the memory limit.
func heapPeak(allowed int64, run func()) int64 {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	runtime.GC()
	before := inUse()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before + allowed))
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := inUse()
		for {
			select {
			case <-done:
				peak <- max(most, inUse()) - before
				return
			case <-time.After(time.Millisecond):
				most = max(most, inUse())
			}
		}
	}()
	run()
	close(done)
	return <-peak
}

// Errors of the reader are not reported as errors of the file.
func TestReaderFails(t *testing.T) {
	t.Parallel()
	file := zipped(t, parts(t))
	for after := range 40 {
		_, err := Open(&breaking{bytes.NewReader(file), after}, int64(len(file)), Limits{})
		if err != nil && !errors.Is(err, errGone) {
			t.Errorf("broken after %d reads: %v", after, err)
		}
	}
}

type breaking struct {
	io.ReaderAt
	left int
}

func (b *breaking) ReadAt(p []byte, off int64) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errGone
	}
	return b.ReaderAt.ReadAt(p, off)
}

// Any file is either read within the limits or rejected as Invalid.
func FuzzOpen(f *testing.F) {
	for _, p := range parts(f) {
		f.Add(p.name, p.text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		list := parts(t)
		for i := range list {
			if list[i].name == name {
				list[i].text = text
			}
		}
		if err := open(zipped(t, list), Limits{Held: 1 << 20}); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v is not Invalid", err)
		}
	})
}
