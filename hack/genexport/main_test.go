package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

func TestTheExportIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		c      config
	}{
		"json":   {"one file", config{conversations: 40, bytes: 1 << 20, seed: 1, out: "e.json"}},
		"zip":    {"one file in a zip", config{conversations: 40, bytes: 1 << 20, seed: 1, out: "e.zip"}},
		"shards": {"split, more parts than conversations", config{conversations: 5, bytes: 1 << 16, seed: 2, shards: 7, out: "e.zip"}},
		"stored": {"not compressed", config{conversations: 40, bytes: 1 << 20, seed: 1, store: true, out: "e.zip"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := written(t, tc.c)
			if again := written(t, tc.c); !bytes.Equal(data, again) {
				t.Error("the same flags give other bytes")
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
			if n != tc.c.conversations || e.Platform != chatexport.ChatGPT || len(e.Warnings) > 0 {
				t.Errorf("%s: %d conversations of %s, warnings %v", tc.reason, n, e.Platform, e.Warnings)
			}
			if notes.Hidden != n || notes.Branches == 0 || len(notes.Unknown) > 0 {
				t.Errorf("%s: notes %+v", tc.reason, notes)
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
