package mcp

import (
	"strings"
	"unicode/utf8"
)

// How many tokens of text a result holds: what its caller allows, so that an
// assistant's window is not filled by one answer.
const (
	leastTokens = 200
	mostTokens  = 20000
	listTokens  = 4000 // of found or listed things, when nothing is said
	readTokens  = 8000 // of a conversation that is read
)

// budget returns the tokens allowed, out of what was asked for.
func budget(asked, otherwise int) int {
	if asked == 0 {
		asked = otherwise
	}
	return min(max(asked, leastTokens), mostTokens)
}

// clip cuts a text to at most n bytes of whole characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// fit returns how many bytes of the text are at most the tokens, at the end of
// a line or word where there is one near; at least one character.
func (e *Endpoint) fit(text string, tokens int) int {
	const roomiest = 8 // bytes a token has at most in ordinary text
	head := clip(text, tokens*roomiest)
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
