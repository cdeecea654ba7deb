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
	Force bool   `short:"f" help:"Replace the file if it is there."`
	File  string `arg:"" optional:"" type:"path" help:"Where to save it; - for standard output. Default: the name the server gives it, in this folder."`
}

// Run saves the export; a file with its name is always whole.
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
	body := &watched{download{answer.Body}, p}
	if c.File == "-" || filepath.Base(c.File) == "-" {
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
		return fmt.Errorf("%s is there already: choose another name, or give --force to replace it", name)
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

// save writes a file under another name and renames it when it is whole.
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
		_ = os.Remove(partial) // half an export is none
	}
	return err
}

// download is an answer being read; when it ends early its error says so.
type download struct{ io.Reader }

// Read implements io.Reader.
func (d download) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, context.Canceled) { //nolint:errorlint // as io.Copy compares it
		err = fmt.Errorf("the export ended early; try again: %w", err)
	}
	return n, err
}
