package main

import (
	"io"
	"strings"
	"unicode"
)

// printable replaces control characters other than tabs and line breaks: stored texts
// must not control the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// oneLine replaces line breaks by spaces.
var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace

// printableWriter writes printable text. Each Write must have whole characters.
type printableWriter struct{ io.Writer }

// Write implements io.Writer.
func (w printableWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, printable(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
