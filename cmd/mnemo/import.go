package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// Bounds of the polling interval, which is a tenth of the elapsed time: polls
// count against the tenant's request rate.
const (
	minPollInterval = time.Second
	maxPollInterval = 10 * time.Second
)

type importCommand struct {
	remoteFlags
	Platform string `enum:",chatgpt,claude" default:"" help:"Platform of the export (chatgpt or claude). Default: detected from the file."`
	Detach   bool   `help:"Return after the upload. The server continues the import."`
	File     string `arg:"" type:"existingfile" help:"The .zip or .json file from the platform."`
}

// Run uploads a file and waits for its import to finish.
func (c *importCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	if c.JSON {
		t = t.quiet()
	}
	id, err := c.upload(ctx, t, server)
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
func (c *importCommand) upload(ctx context.Context, t terminal, server *client.Client) (string, error) {
	file, err := os.Open(c.File)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	var frame bytes.Buffer
	form := multipart.NewWriter(&frame)
	if c.Platform != "" {
		if err := form.WriteField("platform", c.Platform); err != nil {
			return "", err
		}
	}
	if _, err := form.CreateFormFile("file", filepath.Base(c.File)); err != nil {
		return "", err
	}
	before := bytes.Clone(frame.Bytes())
	frame.Reset()
	if err := form.Close(); err != nil {
		return "", err
	}
	p := t.progress("uploading", info.Size(), true)
	body := io.MultiReader(bytes.NewReader(before), &progressReader{file, p}, &frame)
	// With a known length the server can reject a large file before it is sent.
	length := int64(len(before)+frame.Len()) + info.Size()
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
			t.note("conversation %s: %s", e.Conversation, e.Error)
		}
	}
	for _, w := range i.Warnings {
		t.note("%s", w)
	}
	switch {
	case i.Status == client.ImportStatusFailed:
		return fmt.Errorf("import %s failed: fix the file and import it again; conversations that were already stored are kept", i.ImportID)
	case i.Failed > 0:
		return &incompleteError{fmt.Sprintf("%d conversations were not imported", i.Failed)}
	}
	return nil
}
