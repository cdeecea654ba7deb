package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// Bounds of the polling interval, which is a tenth of the elapsed time: polls
// count against the tenant's request rate.
const (
	minPollInterval = time.Second
	maxPollInterval = 10 * time.Second
)

type importCommand struct {
	remoteFlags
	Platform    string   `enum:",${platforms}" default:"" help:"Platform of the exports (${platforms}). Default: detected from each file."`
	SkipInvalid bool     `help:"Restore a Mnemo export without its invalid lines, which a warning names."`
	Detach      bool     `help:"Return after the upload. The server continues the imports."`
	Files       []string `arg:"" name:"file" help:"The files from the platform: .zip, .json, .jsonl, .csv, .html, .gz, .tar.gz. - reads standard input."`
}

// importVars are the variables of the tags of importCommand.
func importVars() kong.Vars { return kong.Vars{"platforms": strings.Join(chatexport.Platforms, ",")} }

// stdin is the name of standard input as a file.
const stdin = "-"

// Run uploads each file and waits for its import to finish. A file that fails does
// not stop the others; the error is that of the first one.
func (c *importCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.JSON {
		t = t.quiet()
	}
	var failed error
	for _, name := range c.Files {
		err := c.one(ctx, t, server, name)
		if err == nil {
			continue
		}
		if len(c.Files) > 1 {
			err = fmt.Errorf("%s: %w", name, err)
			t.note("%v", err)
		}
		failed = cmp.Or(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// check reports files that do not exist before anything is uploaded.
func (c *importCommand) check() error {
	for i, name := range c.Files {
		if name == stdin {
			if slices.Contains(c.Files[:i], stdin) {
				return errors.New("- must not be repeated: standard input can be read only once")
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory: pack it as a .zip or .tar.gz", name)
		}
	}
	return nil
}

// one uploads a file and waits for its import to finish.
func (c *importCommand) one(ctx context.Context, t terminal, server *client.Client, name string) error {
	id, err := c.upload(ctx, t, server, name)
	if err != nil {
		return err
	}
	var last client.Import
	if c.Detach {
		now, err := server.GetImport(ctx, id)
		if err != nil {
			return err
		}
		last = now.Body
	} else if last, err = follow(ctx, t, server, id); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped waiting; the server continues import %s", id)
		}
		return err
	}
	return c.report(t, last)
}

// upload streams the file to the server and returns the ID of the import.
func (c *importCommand) upload(ctx context.Context, t terminal, server *client.Client, name string) (string, error) {
	file, size, err := openImport(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var frame bytes.Buffer
	form := multipart.NewWriter(&frame)
	if c.Platform != "" {
		if err := form.WriteField("platform", c.Platform); err != nil {
			return "", err
		}
	}
	if c.SkipInvalid {
		if err := form.WriteField("skipInvalid", "true"); err != nil {
			return "", err
		}
	}
	if _, err := form.CreateFormFile("file", filepath.Base(name)); err != nil {
		return "", err
	}
	before := bytes.Clone(frame.Bytes())
	frame.Reset()
	if err := form.Close(); err != nil {
		return "", err
	}
	p := t.progress("uploading", max(size, 0), true)
	body := io.MultiReader(bytes.NewReader(before), &progressReader{file, p}, &frame)
	// With a known length the server can reject a large file before it is sent.
	length := int64(-1)
	if size >= 0 {
		length = int64(len(before)+frame.Len()) + size
	}
	started, err := server.ImportFile(ctx, nil, form.FormDataContentType(), body, func(_ context.Context, r *http.Request) error {
		r.ContentLength = length
		return nil
	})
	p.end()
	if err != nil {
		return "", err
	}
	return started.Body.ImportID, nil
}

// openImport opens a file or standard input and returns its size, -1 if unknown.
func openImport(name string) (io.ReadCloser, int64, error) {
	if name == stdin {
		return io.NopCloser(os.Stdin), -1, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	if !info.Mode().IsRegular() { // such as a pipe
		return file, -1, nil
	}
	return file, info.Size(), nil
}

// follow reports the progress of the import until it is finished and indexed.
func follow(ctx context.Context, t terminal, server *client.Client, id string) (client.Import, error) {
	shown := importProgress{terminal: t, storing: t.progress("importing", 0, false)}
	for began := time.Now(); ; {
		wait := min(max(time.Since(began)/10, minPollInterval), maxPollInterval)
		now, err := server.GetImport(ctx, id)
		if refused, ok := errors.AsType[*client.StatusError](err); ok &&
			(refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable) {
			wait = max(wait, refused.RetryAfter)
		} else if err != nil {
			return client.Import{}, err
		} else if shown.update(now.Body) {
			return now.Body, nil
		}
		select {
		case <-ctx.Done():
			return client.Import{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// importProgress shows the progress of storing and then of indexing.
type importProgress struct {
	terminal terminal
	storing  *progress
	indexing *progress // nil until everything is stored
}

// update shows the progress and reports whether the import is finished.
func (p *importProgress) update(i client.Import) (finished bool) {
	if p.indexing == nil {
		p.storing.set(i.Imported+i.Updated+i.Skipped+i.Failed, i.Total)
		if i.Status != client.ImportStatusDone {
			return i.Status == client.ImportStatusFailed
		}
		p.storing.end()
		p.indexing = p.terminal.progress("indexing", i.Total, false)
	}
	p.indexing.set(i.Indexed, i.Total)
	if finished = i.Indexed >= i.Total; finished {
		p.indexing.end()
	}
	return finished
}

// incompleteError means that an import finished without some conversations.
type incompleteError struct{ message string }

func (e *incompleteError) Error() string { return e.message }

func (c *importCommand) report(t terminal, i client.Import) error {
	var err error
	switch {
	case c.JSON:
		err = t.printJSON(i)
	case i.Status != client.ImportStatusFailed:
		_, err = fmt.Fprintf(t.out, "import %s (%s) %s: %d conversations: %d created, %d updated, %d unchanged or empty, %d over quota, %d failed\n",
			i.ImportID, i.Platform, i.Status, i.Total, i.Imported, i.Updated, i.Skipped, i.Blocked, i.Failed)
	}
	if err != nil {
		return err
	}
	for _, e := range i.Errors {
		if e.Conversation == "" {
			t.note("%s", e.Error)
		} else {
			t.note("%s: %s", e.Conversation, e.Error)
		}
	}
	for _, w := range i.Warnings {
		t.note("%s", w)
	}
	switch {
	case i.Status == client.ImportStatusFailed && i.Imported+i.Updated > 0:
		return fmt.Errorf("import %s failed; conversations that were already stored are kept", i.ImportID)
	case i.Status == client.ImportStatusFailed:
		return fmt.Errorf("import %s failed", i.ImportID)
	case i.Failed > 0:
		return &incompleteError{fmt.Sprintf("%d conversations were not imported", i.Failed)}
	}
	return nil
}
