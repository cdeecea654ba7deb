package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

func TestExportMatchesFlags(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		c      config
	}{
		"json":   {"one file", config{conversations: 40, bytes: 1 << 20, seed: 1, out: "e.json"}},
		"zip":    {"one file in a zip", config{conversations: 40, bytes: 1 << 20, seed: 1, out: "e.zip"}},
		"shards": {"more shards than conversations", config{conversations: 5, bytes: 1 << 16, seed: 2, shards: 7, out: "e.zip"}},
		"stored": {"not compressed", config{conversations: 40, bytes: 1 << 20, seed: 1, store: true, out: "e.zip"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := written(t, tc.c)
			if again := written(t, tc.c); !bytes.Equal(data, again) {
				t.Error("a second run with the same flags wrote different bytes")
			}
			e, err := chatexport.Open(bytes.NewReader(data), int64(len(data)), chatexport.Options{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var notes chatexport.Notes
			n := 0
			for c, err := range e.Conversations(nil) {
				if err != nil {
					t.Fatal(err)
				}
				n++
				notes.Add(c.Notes)
			}
			if n != tc.c.conversations {
				t.Errorf("%s: %d conversations, want %d", tc.reason, n, tc.c.conversations)
			}
			if e.Platform != chatexport.ChatGPT {
				t.Errorf("%s: platform %s, want %s", tc.reason, e.Platform, chatexport.ChatGPT)
			}
			if len(e.Warnings) > 0 {
				t.Errorf("%s: warnings %v, want none", tc.reason, e.Warnings)
			}
			if notes.Hidden != n || notes.Branches == 0 || len(notes.Unknown) > 0 {
				t.Errorf("%s: notes %+v, want %d hidden messages, some branches and nothing unknown", tc.reason, notes, n)
			}
		})
	}
}

func written(t *testing.T, c config) []byte {
	t.Helper()
	c.out = filepath.Join(t.TempDir(), c.out)
	if err := run(c); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
