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
	Bucket string   `help:"Search only the bucket with this name."`
	Count  int      `short:"n" default:"10" help:"Maximum number of results."`
	Query  []string `arg:"" help:"Query in natural language."`
}

// Run prints the results, best match first.
func (c *searchCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	query := strings.Join(c.Query, " ")
	if c.Chats {
		return c.searchChats(ctx, t, server, query)
	}
	params := client.ListMemoriesParams{Query: &query}
	if c.Bucket != "" {
		id, err := bucketID(ctx, server, c.Bucket)
		if err != nil {
			return err
		}
		params.BucketID = new(id)
	}
	found, degraded, err := listMemories(ctx, server, params, c.Count)
	if err != nil {
		return err
	}
	t.noteDegraded(degraded)
	if c.JSON {
		return t.printJSON(found)
	}
	return t.printMemories(found.Memories)
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
		if _, err := fmt.Fprintf(t.out, "%s  %s: %s  (%s, %s)\n", r.Timestamp.Format("2006-01-02"), r.Sender, oneLine(r.Text), oneLine(r.Title), r.ConversationID); err != nil {
			return err
		}
	}
	return nil
}

// noteDegraded warns that results may be missing.
func (t terminal) noteDegraded(degraded bool) {
	if degraded {
		t.note("semantic search is unavailable or still indexing; these are keyword results, and more may be found later")
	}
}
