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
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

type rememberCommand struct {
	remoteFlags
	Bucket string   `help:"Name of the bucket. Default: the default bucket."`
	Text   []string `arg:"" help:"Text of the memory, or - to read standard input. Today's date is prepended unless the text starts with a date."`
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
	request := client.CreateMemoryRequest{Text: withDate(text, time.Now()), Source: new("mnemo CLI")}
	if c.Bucket != "" {
		id, err := bucketID(ctx, server, c.Bucket)
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
	outcome := "remembered as"
	if stored.Body.IsDuplicate != nil && *stored.Body.IsDuplicate {
		outcome = "already remembered as"
	}
	_, err = fmt.Fprintf(t.out, "%s %s\n", outcome, stored.Body.MemoryID)
	return err
}

var startsWithDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}\b`)

// withDate adds the date in front of a text that does not start with one, as the
// API requires of clients. A blank text is left for the server to reject.
func withDate(text string, now time.Time) string {
	if startsWithDate.MatchString(text) || textrule.IsBlank(text) {
		return text
	}
	return now.Format(time.DateOnly) + " " + text
}

// bucketID returns the ID of a bucket by its name, ignoring case.
func bucketID(ctx context.Context, server *client.Client, name string) (int64, error) {
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
	return 0, fmt.Errorf("bucket %q not found; existing buckets: %s", name, strings.Join(names, ", "))
}
