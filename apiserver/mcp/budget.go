package mcp

import (
	"strings"
	"unicode/utf8"
)

// Token limits of a result. The caller can choose a limit within these bounds, so
// that one result does not fill the context window.
const (
	leastTokens = 200
	mostTokens  = 20000
	listTokens  = 4000 // default for lists and searches
	readTokens  = 8000 // default for conversations, and the limit of a page of buckets: the largest one fits
	// longestTitle is the length limit of the title of a conversation, bytes.
	longestTitle = 200
)

// budget returns the token limit for a requested limit, 0 for the default.
func budget(requested, fallback int) int {
	if requested == 0 {
		requested = fallback
	}
	return min(max(requested, leastTokens), mostTokens)
}

// clip truncates a text to at most n bytes at a character boundary.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// title returns the title of a conversation, or its beginning if it is long.
func title(text string) string {
	if len(text) <= longestTitle {
		return text
	}
	return clip(text, longestTitle) + "…"
}

// size returns the tokens of an item of a result as JSON, or more than limit if it exceeds it.
func (e *Endpoint) size(item any, limit int) int {
	raw, err := encode(item)
	if err != nil {
		return limit + 1 // toolResult returns the error
	}
	return e.Chats.CountTokens(raw, max(limit, 0))
}

// shorten truncates a text in an item until the item is within the token limit, and sets cut if it does. At least one
// character remains.
func (e *Endpoint) shorten(item any, text *string, cut *bool, limit int) {
	for n := limit; n > 0 && e.size(item, limit) > limit; n = n * 3 / 4 {
		*text, *cut = (*text)[:e.fit(*text, n)], true
	}
}

// fit returns the length of the longest prefix within the token limit, preferably
// at the end of a line or word; at least one character.
func (e *Endpoint) fit(text string, tokens int) int {
	const maxTokenBytes = 8 // in ordinary text
	head := clip(text, tokens*maxTokenBytes)
	for len(head) > utf8.UTFMax && e.Chats.CountTokens(head, tokens) > tokens {
		head = clip(head, len(head)*4/5)
	}
	if len(head) == len(text) {
		return len(text)
	}
	if i := strings.LastIndexAny(head, "\n "); i > len(head)*3/4 {
		head = head[:i+1]
	}
	if head == "" {
		_, n := utf8.DecodeRuneInString(text)
		return n
	}
	return len(head)
}
