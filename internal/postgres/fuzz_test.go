package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// FuzzLexical searches for any text in a real database. The function builds a query
// from its words, so no text of any length may fail, and the units are the user's own. Invalid
// UTF-8 and U+0000 are rejected before.
func FuzzLexical(f *testing.F) {
	b := setup(f, nil)
	own := map[retrieve.UnitID]bool{}
	for _, a := range answers[:5] {
		for i, user := range b.users {
			b.remember(f, user, a.text, nil)
			if i > 0 {
				continue
			}
			hits, err := b.Lexical(f.Context(), user, retrieve.Request{Kind: retrieve.Memory, Text: a.text, Limit: 10})
			if err != nil {
				f.Fatal(err)
			}
			for _, h := range hits {
				own[h.ID] = true
			}
		}
	}
	for _, text := range []string{
		"", "telescope", "'; drop table units; --", `a\b'c & ! | <-> :*`, "walnuts' \\ ''", "http://x.test/a?b=c#d", "我对花生过敏", "a@b.test 1e9 -5 --",
		strings.Repeat("flea market ", 60), "\"", "the and of", "$1 %s \\x00 \\u0000", "e\u0301", manyWords(150_000),
	} {
		f.Add(text, int64(0), int64(0), int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, group, from, to int64) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		q := retrieve.Request{Kind: retrieve.Memory, Text: text, Group: group, Limit: 10}
		if from > 0 && from < 1<<37 {
			q.From = time.Unix(from, 0)
		}
		if to > 0 && to < 1<<37 {
			q.To = time.Unix(to, 0)
		}
		hits, err := b.Lexical(t.Context(), b.users[0], q)
		if err != nil {
			t.Fatalf("search %q: %v", text, err)
		}
		for _, h := range hits {
			if !own[h.ID] {
				t.Fatalf("search %q returned the unit %d of another user", text, h.ID)
			}
		}
	})
}

// manyWords returns a text of different words.
func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%06d ", i)
	}
	return b.String()
}
