package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/api/client"
)

type searchCommand struct {
	remoteFlags
	Chats  bool     `help:"Search conversations instead of memories."`
	Bucket string   `help:"Only memories of the bucket of this name."`
	Count  int      `short:"n" default:"10" help:"How many at most."`
	Query  []string `arg:"" help:"What to look for, in words of your own."`
}

// Run prints what fits the query best, best first.
func (c *searchCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	query := strings.Join(c.Query, " ")
	if c.Chats {
		return c.searchChats(ctx, t, server, query)
	}
	params := &client.ListMemoriesParams{Query: &query, Count: &c.Count}
	if c.Bucket != "" {
		id, err := bucketNamed(ctx, server, c.Bucket)
		if err != nil {
			return err
		}
		params.BucketID = new(int(id))
	}
	found, err := server.ListMemories(ctx, params)
	if err != nil {
		return err
	}
	t.noteDegraded(found.Degraded())
	if c.JSON {
		return t.printJSON(found.Body)
	}
	for _, m := range found.Body.Memories {
		if _, err := fmt.Fprintf(t.out, "%s  (%s, %s)\n", m.Text, m.Metadata.BucketName, m.ID); err != nil {
			return err
		}
	}
	return nil
}

func (c *searchCommand) searchChats(ctx context.Context, t terminal, server *client.Client, query string) error {
	found, err := server.SearchConversations(ctx, client.SearchRequest{Query: query, Limit: new(int64(c.Count))})
	if err != nil {
		return err
	}
	t.noteDegraded(found.Degraded())
	if c.JSON {
		return t.printJSON(found.Body)
	}
	for _, r := range found.Body.Results {
		if _, err := fmt.Fprintf(t.out, "%s  %s: %s  (%s, %s)\n", r.Timestamp.Format("2006-01-02"), r.Sender, r.Text, r.Title, r.ConversationID); err != nil {
			return err
		}
	}
	return nil
}

// noteDegraded tells a person that something may be missing.
func (t terminal) noteDegraded(degraded bool) {
	if degraded {
		t.note("the vector store is away or behind: this was found by words, and more may be found later")
	}
}
