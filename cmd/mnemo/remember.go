package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

type rememberCommand struct {
	remoteFlags
	Bucket string   `help:"Name of the bucket to put it in. Default: the default bucket."`
	Text   []string `arg:"" help:"What to remember; - to read it from standard input. Today's date is put in front unless it begins with one."`
}

// Run stores one memory.
func (c *rememberCommand) Run(ctx context.Context, t terminal) error {
	text := strings.Join(c.Text, " ")
	if text == "-" {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSpace(string(raw))
	}
	server, err := c.open()
	if err != nil {
		return err
	}
	request := client.CreateMemoryRequest{Text: dated(text, time.Now()), Source: new("mnemo CLI")}
	if c.Bucket != "" {
		id, err := bucketNamed(ctx, server, c.Bucket)
		if err != nil {
			return err
		}
		request.BucketID = &id
	}
	stored, err := server.CreateMemory(ctx, nil, request)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(stored.Body)
	}
	_, err = fmt.Fprintf(t.out, "remembered as %s\n", stored.Body.MemoryID)
	return err
}

var beginsWithDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}\b`)

// dated puts the day in front of a text that does not begin with one, as the
// contract asks of callers. A blank text stays as it is, to be refused.
func dated(text string, now time.Time) string {
	if beginsWithDate.MatchString(text) || strings.TrimSpace(text) == "" {
		return text
	}
	return now.Format(time.DateOnly) + " " + text
}

// bucketNamed finds a bucket by its name without regard to case.
func bucketNamed(ctx context.Context, server *client.Client, name string) (int64, error) {
	list, err := server.ListBuckets(ctx, nil)
	if err != nil {
		return 0, err
	}
	names := make([]string, len(list.Body))
	for i, b := range list.Body {
		if strings.EqualFold(b.Name, name) {
			var id int64
			_, err := fmt.Sscan(b.ID, &id)
			return id, err
		}
		names[i] = b.Name
	}
	return 0, fmt.Errorf("there is no bucket %q; there are: %s", name, strings.Join(names, ", "))
}
