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

// The server is asked how far an import is after a tenth of the time it has
// taken, within these bounds: each question is one of the tenant's requests.
const (
	shortPoll = time.Second
	longPoll  = 10 * time.Second
)

type importCommand struct {
	remoteFlags
	Platform string `enum:",chatgpt,claude" default:"" help:"Read only this platform's conversations (chatgpt or claude). Default: what the file looks like."`
	Detach   bool   `help:"End when the file is uploaded: the server goes on by itself."`
	File     string `arg:"" type:"existingfile" help:"The .zip or .json, as the platform gave it."`
}

// Run uploads a file and follows its import to the end.
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
			return fmt.Errorf("no longer watching: the server goes on with import %s by itself", id)
		}
		return err
	}
	return c.report(t, last)
}

// upload sends the file as it is read and returns the import's id.
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
	body := io.MultiReader(bytes.NewReader(before), &watched{file, p}, &frame)
	// With its length known the server refuses a file that is too large before it is sent.
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

// follow tells how far the import is until it is over and everything indexed.
func follow(ctx context.Context, t terminal, server *client.Client, id string) (client.Import, error) {
	shown := importProgress{terminal: t, storing: t.progress("importing", 0, false)}
	for began := time.Now(); ; {
		wait := min(max(time.Since(began)/10, shortPoll), longPoll)
		now, err := server.GetImport(ctx, id)
		if refused, ok := errors.AsType[*client.StatusError](err); ok &&
			(refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable) {
			wait = max(wait, refused.RetryAfter)
		} else if err != nil {
			return client.Import{}, err
		} else if shown.tell(now.Body) {
			return now.Body, nil
		}
		select {
		case <-ctx.Done():
			return client.Import{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// importProgress shows an import being stored and then indexed.
type importProgress struct {
	terminal terminal
	storing  *progress
	indexing *progress // nil until all is stored
}

// tell shows how far the import is and reports whether nothing more will come.
func (p *importProgress) tell(i client.Import) (over bool) {
	if p.indexing == nil {
		p.storing.set(i.Imported+i.Updated+i.Skipped+i.Failed, i.Total)
		if i.Status != client.ImportStatusDone {
			return i.Status == client.ImportStatusFailed
		}
		p.storing.end()
		p.indexing = p.terminal.progress("indexing", i.Total, false)
	}
	p.indexing.set(i.Indexed, i.Total)
	if over = i.Indexed >= i.Total; over {
		p.indexing.end()
	}
	return over
}

// leftOutError says that an import ended without all that was in its file.
type leftOutError struct{ message string }

func (e *leftOutError) Error() string { return e.message }

func (c *importCommand) report(t terminal, i client.Import) error {
	var err error
	switch {
	case c.JSON:
		err = t.printJSON(i)
	case i.Status != client.ImportStatusFailed:
		_, err = fmt.Fprintf(t.out, "import %s (%s) is %s: %d conversations, %d new, %d changed, %d unchanged or empty, %d blocked by the quota, %d failed\n",
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
		return fmt.Errorf("import %s failed: mend the file and import it again, what is stored stays as it is", i.ImportID)
	case i.Failed > 0:
		return &leftOutError{fmt.Sprintf("%d conversations were not imported", i.Failed)}
	}
	return nil
}
