// Command genexport writes a synthetic ChatGPT export of any size, to test imports
// without real chats:
//
//	go run ./hack/genexport -conversations 20000 -bytes 1073741824 -o export.zip
//
// The output depends only on the flags. Texts are made of a short list of words.
// Conversations differ in length, every fifth has an abandoned branch, and some
// contain code, tool and hidden messages.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// config holds the flags.
type config struct {
	conversations int
	bytes         int64 // of JSON, approximately
	shards        int   // 0 for one conversations.json
	seed          uint64
	store         bool
	out           string // .json or .zip
}

func main() {
	var c config
	flag.IntVar(&c.conversations, "conversations", 1000, "number of conversations")
	flag.Int64Var(&c.bytes, "bytes", 50<<20, "approximate size of the JSON in bytes")
	flag.IntVar(&c.shards, "shards", 0, "number of conversation files, with a manifest; 0 for one conversations.json")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the random generator")
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
