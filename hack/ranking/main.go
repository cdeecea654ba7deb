// Command ranking writes the histories of LoCoMo- and BEAM-format files as the JSON from which the scripts in this directory learn:
//
//	go run ./hack/ranking a.json b.json > units.json
//
// The output contains the text of the files. Never commit it.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mnemo-dev/mnemo/test/retrievalbench"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ranking:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return errors.New("name at least one file in the format of LoCoMo or BEAM")
	}
	w := bufio.NewWriter(out)
	if err := retrievalbench.WriteUnits(w, paths...); err != nil {
		return err
	}
	return w.Flush()
}
