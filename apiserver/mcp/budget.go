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
	readTokens  = 8000 // default for conversations
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
