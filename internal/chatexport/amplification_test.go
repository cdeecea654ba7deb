package chatexport_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// hostileSize is the decompressed size of a hostile file, and the limit of a conversation in it.
	hostileSize = 5 << 20
	// amplified is the heap that reading it may use, for any content: a multiple of the limit of a conversation.
	amplified = 10 * hostileSize
)

// fill returns a text of the hostile size: many copies of a part.
func fill(head, part, tail string) []byte {
	n := (hostileSize - len(head) - len(tail)) / len(part)
	return []byte(head + strings.Repeat(part, n) + tail)
}

// hostile are files of every format whose content is chosen so that a parser needs the most memory for its size.
var hostile = map[string]func(t *testing.T) []byte{
	"csv row":            func(*testing.T) []byte { return fill(csvHeader+"A,2025-01-01,Human,hi\n", ",", "\n") },
	"csv row compressed": func(t *testing.T) []byte { return gzipped(t, fill(csvHeader, ",", "\n")) },
	"csv header": func(*testing.T) []byte {
		return fill("Conversation,Time,Author,Message", ",", "\nA,2025-01-01,Human,hi\n")
	},
	"csv rows":     func(*testing.T) []byte { return fill(csvHeader, "A,2025-01-01,Human,hi\n", "") },
	"csv quotes":   func(*testing.T) []byte { return fill(csvHeader+`A,2025-01-01,Human,"`, `""`, "\"\n") },
	"csv controls": func(*testing.T) []byte { return fill(csvHeader+"A,2025-01-01,Human,x", "\x01", "\n") },
	"csv in a zip": func(t *testing.T) []byte {
		return archive(t, deflated("a.csv", fill(csvHeader, ",", "\n")))
	},
	"html attributes":          func(*testing.T) []byte { return fill(htmlHead+"<p", " a", ">"+htmlTail) },
	"html distinct attributes": func(*testing.T) []byte { return []byte(htmlHead + "<p" + attributes(700<<10) + ">" + htmlTail) },
	"html giant tag": func(*testing.T) []byte {
		return []byte(htmlHead + "<p" + attributes(hostileSize-1000) + ">" + htmlTail)
	},
	"html distinct attributes in json": func(*testing.T) []byte {
		return []byte(geminiHead + "<p" + attributes(hostileSize-1000) + `>"}]}]`)
	},
	"html attribute values": func(*testing.T) []byte { return fill(htmlHead+`<p a="`, "x", `">`+htmlTail) },
	"html tags":             func(*testing.T) []byte { return fill(htmlHead, "<p>", htmlTail) },
	"html lines":            func(*testing.T) []byte { return fill(htmlHead, "<br>", htmlTail) },
	"html activities":       func(*testing.T) []byte { return fill("<html>", htmlHead[len("<html>"):]+htmlTail, "") },
	"html controls":         func(*testing.T) []byte { return fill(htmlHead+"x", "\x01", htmlTail) },
	"html in json": func(*testing.T) []byte {
		return fill(geminiHead+"<p", " a", `>"}]}]`)
	},
	"html markdown": func(*testing.T) []byte {
		return fill(geminiHead, "<li>|`[a](<pre>", `"}]}]`)
	},
	"deep lists":   func(*testing.T) []byte { return fill("", "[", "") },
	"deep objects": func(*testing.T) []byte { return fill(`[{"mapping":`, `{"a":`, "") },
	"deep children": func(*testing.T) []byte {
		return fill(`[{"conversationId":"a","messages":`, `[{"messageId":"a","children":`, "")
	},
	"nodes":    func(*testing.T) []byte { return fill(`[{"mapping":{`, `"":{},`, `"a":{}}}]`) },
	"children": func(*testing.T) []byte { return fill(`[{"mapping":{"m":{"children":[`, `"",`, `""]}}}]`) },
	"parts": func(*testing.T) []byte {
		return fill(chatgptHead+`{"content_type":"text","parts":[`, `"a",`, `""]}`+chatgptTail)
	},
	"objects in parts": func(*testing.T) []byte {
		return fill(chatgptHead+`{"content_type":"x","parts":[`, `{},`, `""]}`+chatgptTail)
	},
	"attachments": func(*testing.T) []byte {
		return fill(`[{"mapping":{"m":{"message":{"author":{"role":"user"},"metadata":{"attachments":[`, `{"name":"a"},`, `{}]}}}}}]`)
	},
	"giant string": func(*testing.T) []byte { return fill(claudeHead+`"text":"`, "x", `"}]}]`) },
	"escapes":      func(*testing.T) []byte { return fill(claudeHead+`"text":"`, `\u00`, `"}]}]`) },
	"invalid UTF-8": func(*testing.T) []byte {
		return fill(claudeHead+`"text":"`, "\xff", `"}]}]`)
	},
	"blocks":         func(*testing.T) []byte { return fill(claudeHead+`"content":[`, `{},`, `{}]}]}]`) },
	"unknown blocks": func(*testing.T) []byte { return fill(claudeHead+`"content":[`, `{"type":"x"},`, `{}]}]}]`) },
	"images":         func(*testing.T) []byte { return fill(claudeHead+`"content":[`, `{"type":"file"},`, `{}]}]}]`) },
	"messages":       func(*testing.T) []byte { return fill(`[{"uuid":"a","chat_messages":[`, `{},`, `{}]}]`) },
	"generated images": func(*testing.T) []byte {
		return fill(`[{"conversation":{"id":"a"},"responses":[{"response":{"generated_image_urls":[`, `0,`, `0]}}]}]`)
	},
	"values":        func(*testing.T) []byte { return fill("[", `{},`, `{}]`) },
	"conversations": func(*testing.T) []byte { return fill("[", `{"mapping":{}},`, `{}]`) },
	"records":       func(*testing.T) []byte { return fill("", `{"role":"user","content":"a"}`+"\n", "") },
	"sessions": func(*testing.T) []byte {
		return fill("", `{"sessionId":"s","uuid":"u","message":{"role":"user","content":[]}}`+"\n", "")
	},
	"members": func(*testing.T) []byte { return fill(`[{`, `"a":0,`, `"mapping":{}}]`) },
	"names": func(*testing.T) []byte {
		return fill(`[{"mapping":{"`, `a`, `":{}}}]`)
	},
	"ids of unknown values": func(*testing.T) []byte {
		value := `{"id":"` + strings.Repeat("a", hostileSize-10) + `"},`
		return []byte("[" + strings.Repeat(value, 12) + `{"mapping":{}}]`)
	},
	"manifest":    func(*testing.T) []byte { return fill(`{"files":[`, `"a.zip",`, `""]}`) },
	"zip names":   func(t *testing.T) []byte { return many(t, 20_000) },
	"zip members": func(t *testing.T) []byte { return archive(t, smallFiles(5000)...) },
	"zip manifests": func(t *testing.T) []byte {
		return archive(t, deflated("manifest.json", fill(`{"a":[`, `"conversations-1.zip",`, `0]}`)))
	},
	"zip in zips": func(t *testing.T) []byte {
		inner := archive(t, deflated("conversations.json", fill(`[{"mapping":{`, `"":{},`, `"a":{}}}]`)))
		return archive(t, deflated("a.zip", archive(t, stored("b.zip", inner))))
	},
	"gzip in gzip": func(t *testing.T) []byte { return gzipped(t, gzipped(t, fill(`[{"mapping":{`, `"":{},`, `"a":{}}}]`))) },
	"tar members":  func(t *testing.T) []byte { return gzipped(t, tarred(t, smallFiles(5000)...)) },
}

const (
	csvHeader   = "Conversation,Time,Author,Message\n"
	htmlHead    = `<html><div class="outer-cell"><div class="header-cell">Gemini Apps</div><div class="content-cell">Prompted x<br>Jan 1, 2025, 10:00:00 AM<br>`
	htmlTail    = `</div></div>`
	geminiHead  = `[{"header":"Gemini Apps","title":"Prompted x","time":"2025-01-01T00:00:00Z","safeHtmlItem":[{"html":"`
	chatgptHead = `[{"mapping":{"m":{"message":{"author":{"role":"user"},"content":`
	chatgptTail = `}}},"current_node":"m"}]`
	claudeHead  = `[{"uuid":"a","chat_messages":[{"uuid":"b","sender":"human",`
)

// attributes returns distinct attributes of a tag, size bytes in total.
func attributes(size int) string {
	var names strings.Builder
	for n := 0; names.Len() < size; n++ {
		names.WriteByte(' ')
		names.WriteString(strconv.FormatInt(int64(n), 36))
	}
	return names.String()
}

// smallFiles returns n small conversations, each a file.
func smallFiles(n int) []entry {
	out := make([]entry, n)
	for i := range out {
		out[i] = deflated(fmt.Sprint(i), []byte(simple))
	}
	return out
}

// No content of a file makes its parser use more memory than a multiple of the limit of a conversation. Not parallel: it
// measures the heap of the process. The memory limit of the runtime is less than the allowed heap, because a busy machine
// collects garbage late.
func TestHostileContentNeedsBoundedMemory(t *testing.T) {
	limits := chatexport.Limits{Conversation: hostileSize, Messages: 10_000, Conversations: 50_000, Entries: 50_000}
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			data := make(t)
			runtime.GC()
			before := inUse()
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(before + amplified*9/10)))
			peak := watch(t)
			n, err := readAll(data, limits)
			got := peak() - before
			t.Logf("%d conversations of %d bytes, peak %d KiB: %v", n, len(data), got>>10, err)
			if err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("the error is %v, want Invalid", err)
			}
			if got > amplified {
				t.Errorf("the heap reached %d KiB, want at most %d", got>>10, amplified>>10)
			}
		})
	}
}

// readAll reads the conversations of a file and returns their number.
func readAll(data []byte, limits chatexport.Limits) (n int, err error) {
	e, err := chatexport.Open(bytes.NewReader(data), int64(len(data)), chatexport.Options{Limits: limits})
	if err != nil {
		return 0, err
	}
	for _, err := range e.Conversations(nil) {
		if err != nil && !fault.Is(err, fault.Invalid) {
			return n, err
		}
		n++
	}
	return n, nil
}
