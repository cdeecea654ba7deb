package mcp

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// FuzzCursor: from any cursor, the pages of a conversation contain its texts to the
// end, each once, and reading ends.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"0", "1.3", "1.999", "99", "-1", "0.-1", "9223372036854775808", "1.2.3", "+1", "0x1", ""} {
		f.Add(cursor, "Which seat?", "By the window, 我对花生过敏", uint16(2))
	}
	f.Fuzz(func(t *testing.T, cursor, first, second string, tokens uint16) {
		from, err := parsePosition(cursor)
		if err != nil || !utf8.ValidString(first+second) {
			return
		}
		if again, err := parsePosition(from.String()); err != nil || again != from {
			t.Fatalf("cursor %q is %+v, and again %+v", cursor, from, again)
		}
		messages := []chat.Message{{Text: first}, {Index: 1, Text: second}}
		if from.message >= len(messages) {
			return
		}
		e := &Endpoint{Config: Config{Chats: chat.NewService(chat.Config{CountTokens: func(text string, _ int) int { return (utf8.RuneCountInString(text) + 3) / 4 }})}}
		var got strings.Builder
		for pages := 0; ; pages++ {
			list, next := e.page(messages, from, int(tokens%50)+1)
			for _, m := range list {
				got.WriteString(m.Text)
			}
			if next == nil {
				break
			}
			if pages > len(first)+len(second) || next.message < from.message || next.message == from.message && next.offset <= from.offset {
				t.Fatalf("after %+v comes %+v", from, *next)
			}
			from = *next
		}
		if want := first + second; !strings.HasSuffix(want, got.String()) {
			t.Fatalf("cursor %q of %q: read %q", cursor, want, got.String())
		}
	})
}

// FuzzResource: an address is that of a conversation or rejected, and the addresses
// that the server returns are read as what they name.
func FuzzResource(f *testing.F) {
	for _, id := range []string{"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15", "a/b", "a?cursor=1", "a#b", "%2e%2e", "a b", "\x00"} {
		f.Add(id, "1.5")
	}
	f.Fuzz(func(t *testing.T, id, cursor string) {
		u, err := url.Parse(address(id, &cursor))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(u.Scheme, u.Host, strings.TrimPrefix(u.Path, "/"), u.Query()["cursor"]); got != fmt.Sprint(scheme, resourceHost, id, []string{cursor}) {
			t.Fatalf("%q, %q: address %q", id, cursor, u)
		}
	})
}
