// Command genexport writes a synthetic ChatGPT export, so that importing one
// of any size can be tried without anybody's chats:
//
//	go run ./hack/genexport -conversations 20000 -bytes 1073741824 -o export.zip
//
// The same flags give the same bytes. Everything in it is made up of a short
// list of words; conversations differ in length, every fifth has an abandoned
// branch, and code, tool and hidden messages are among them.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// config is what the flags say.
type config struct {
	conversations int
	bytes         int64 // of JSON, about
	shards        int   // 0 for one conversations.json
	seed          uint64
	store         bool
	out           string // .json or .zip
}

func main() {
	var c config
	flag.IntVar(&c.conversations, "conversations", 1000, "how many conversations")
	flag.Int64Var(&c.bytes, "bytes", 50<<20, "about how many bytes of JSON in all")
	flag.IntVar(&c.shards, "shards", 0, "parts to split into, with a manifest; 0 for one conversations.json")
	flag.Uint64Var(&c.seed, "seed", 1, "another seed gives another export")
	flag.BoolVar(&c.store, "store", false, "do not compress the zip")
	flag.StringVar(&c.out, "o", "export.zip", "file to write, .zip or .json")
	flag.Parse()
	if err := run(c); err != nil {
		fmt.Fprintln(os.Stderr, "genexport:", err)
		os.Exit(1)
	}
}

// run writes the export.
func run(c config) (err error) {
	if c.conversations < 1 || c.bytes < 1 || c.shards < 0 {
		return fmt.Errorf("conversations and bytes must be at least 1, shards at least 0")
	}
	f, err := os.Create(c.out)
	if err != nil {
		return fmt.Errorf("create export: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	switch filepath.Ext(c.out) {
	case ".json":
		err = writeJSON(w, c)
	case ".zip":
		err = writeZip(w, c)
	default:
		err = fmt.Errorf("%s is neither .json nor .zip", c.out)
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// writeJSON writes all conversations as one array.
func writeJSON(w io.Writer, c config) error {
	return newGenerator(c).array(w, 0, c.conversations)
}
