package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/client"
)

// hostile has escape sequences that set the title, clear the screen, and hide the rest.
const hostile = "a\x1b]0;title\x07b\x1b[2Jc\u009b8md\re\x7f\tf\r\n\u00e9"

func TestTerminalOutputHasNoEscapeSequences(t *testing.T) {
	const want = "a\uFFFD]0;title\uFFFDb\uFFFD[2Jc\uFFFD8md\uFFFDe\uFFFD\tf\n\u00e9"
	var out bytes.Buffer
	if n, err := (printableWriter{&out}).Write([]byte(hostile)); n != len(hostile) || err != nil || out.String() != want {
		t.Errorf("Write = %d, %v and wrote %q, want %q", n, err, out.String(), want)
	}
	out.Reset()
	terminal{err: &out}.note("conversation %s", hostile)
	if got := out.String(); got != "mnemo: conversation "+want+"\n" {
		t.Errorf("note printed %q", got)
	}
}

func TestListPrintsOneLinePerMemory(t *testing.T) {
	var out bytes.Buffer
	memories := []client.Memory{{Text: "one\r\ntwo  three\n(General, forged)"}}
	if err := (terminal{out: &out}).printMemories(memories); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "one two  three (General, forged)  (") || strings.Count(got, "\n") != 1 {
		t.Errorf("printed %q", got)
	}
}
