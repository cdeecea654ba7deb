package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
)

type exportCommand struct {
	remoteFlags
	Force bool   `short:"f" help:"Overwrite an existing file."`
	File  string `arg:"" optional:"" type:"path" help:"Path of the zip file, or - for standard output. Default: standard output if it is redirected to a file or pipe, otherwise the file name from the server, in the current directory."`
}

// Run saves the export. A file with the final name is always complete.
func (c *exportCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	if c.JSON {
		t = t.quiet()
	}
	answer, err := server.Export(ctx)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	p := t.progress("exporting", 0, true)
	body := &progressReader{download{answer.Body}, p}
	if c.File == "-" || c.File == "" && !c.JSON && t.redirected || filepath.Base(c.File) == "-" {
		_, err := io.Copy(t.out, body)
		p.end()
		return err
	}
	_, params, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition"))
	if err != nil {
		params = nil
	}
	name := cmp.Or(c.File, filepath.Base(cmp.Or(params["filename"], "mnemo-export.zip")))
	if _, err := os.Stat(name); err == nil && !c.Force {
		return fmt.Errorf("%s already exists: choose another name, or use --force to overwrite it", name)
	}
	if err := save(name, body); err != nil {
		return err
	}
	p.end()
	if c.JSON {
		return t.printJSON(map[string]any{"file": name, "bytes": p.at})
	}
	_, err = fmt.Fprintf(t.out, "saved %s\n", name)
	return err
}

// save writes to a temporary file and renames it when it is complete.
func save(name string, body io.Reader) error {
	partial := name + ".partial"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(partial, name)
	}
	if err != nil {
		_ = os.Remove(partial) // an incomplete export is useless
	}
	return err
}

// download is a response body whose read error says that the export is incomplete.
type download struct{ io.Reader }

// Read implements io.Reader.
func (d download) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, context.Canceled) { //nolint:errorlint // as io.Copy compares it
		err = fmt.Errorf("export incomplete; try again: %w", err)
	}
	return n, err
}
