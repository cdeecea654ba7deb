package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mnemo-dev/mnemo/api/client"
)

type listMemoriesCommand struct {
	remoteFlags
	Bucket string `help:"List only the bucket with this name."`
	Count  int    `short:"n" default:"10" help:"Maximum number of memories."`
	Skip   int    `help:"Number of memories to skip."`
}

// Run prints memories, newest first.
func (c *listMemoriesCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	params := client.ListMemoriesParams{Latest: new(true), Skip: &c.Skip}
	if c.Bucket != "" {
		id, err := bucketID(ctx, server, c.Bucket)
		if err != nil {
			return err
		}
		params.BucketID = new(id)
	}
	list, _, err := listMemories(ctx, server, params, c.Count)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(list)
	}
	return t.printMemories(list.Memories)
}

// listMemories returns up to count memories, and whether a page was degraded. It requests pages as needed: the server
// limits their number of memories and tokens.
func listMemories(
	ctx context.Context, server *client.Client, params client.ListMemoriesParams, count int,
) (list client.MemoryList, degraded bool, err error) {
	var memories []client.Memory
	for {
		params.Count = new(count - len(memories))
		page, err := server.ListMemories(ctx, &params)
		if err != nil {
			return client.MemoryList{}, false, err
		}
		memories = append(memories, page.Body.Memories...)
		list, degraded = page.Body, degraded || page.Degraded()
		if list.NextSkip == nil || len(memories) >= count {
			list.Memories = memories
			return list, degraded, nil
		}
		params.Skip = new(int(*list.NextSkip))
	}
}

// printMemories prints one memory per line.
func (t terminal) printMemories(memories []client.Memory) error {
	for _, m := range memories {
		if _, err := fmt.Fprintf(t.out, "%s  (%s, %s)\n", oneLine(m.Text), oneLine(m.Metadata.BucketName), m.ID); err != nil {
			return err
		}
	}
	return nil
}

type conversationsCommand struct {
	remoteFlags
	Title string `help:"List only conversations with this text in the title."`
	Count int    `short:"n" default:"25" help:"Maximum number of conversations, up to 100."`
	Page  int    `default:"1" help:"Page number."`
}

// Run prints conversations, newest first.
func (c *conversationsCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	params := &client.ListConversationsParams{Page: &c.Page, PageSize: &c.Count}
	if c.Title != "" {
		params.Title = &c.Title
	}
	page, err := server.ListConversations(ctx, params)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(page.Body)
	}
	for _, chat := range page.Body.Items {
		_, err := fmt.Fprintf(t.out, "%s  %s  (%s, %d messages, %s)\n", chat.CreatedAt.Format("2006-01-02"), oneLine(chat.Title), chat.Platform, chat.MessageCount, chat.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

type getCommand struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"ID of a memory or conversation."`
}

// Run prints a memory or a conversation.
func (c *getCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	memory, err := server.GetMemory(ctx, c.ID)
	switch {
	case client.StatusOf(err) == http.StatusNotFound:
		return c.conversation(ctx, t, server)
	case err != nil:
		return err
	case c.JSON:
		return t.printJSON(memory.Body)
	}
	_, err = fmt.Fprintln(t.out, memory.Body.Text)
	return err
}

func (c *getCommand) conversation(ctx context.Context, t terminal, server *client.Client) error {
	chat, err := server.GetConversation(ctx, &client.GetConversationParams{ConversationID: c.ID})
	switch {
	case client.StatusOf(err) == http.StatusNotFound:
		return fmt.Errorf("no memory or conversation has the ID %s", c.ID)
	case err != nil:
		return err
	case c.JSON:
		return t.printJSON(chat.Body)
	}
	if _, err := fmt.Fprintf(t.out, "%s\n", chat.Body.Title); err != nil {
		return err
	}
	for _, m := range chat.Body.Messages {
		if _, err := fmt.Fprintf(t.out, "\n%s  %s:\n%s\n", m.Timestamp.Format("2006-01-02 15:04"), m.Sender, m.Text); err != nil {
			return err
		}
	}
	return nil
}

type deleteCommand struct {
	remoteFlags
	IDs []string `arg:"" name:"id" help:"IDs of memories and conversations. They are deleted permanently."`
}

// Run deletes each, and continues after IDs that do not exist.
func (c *deleteCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	deleted, missing := []string{}, []string{}
	for _, id := range c.IDs {
		found, err := deleteOne(ctx, server, id)
		if err != nil {
			return fmt.Errorf("%w (deleted %d of %d)", err, len(deleted), len(c.IDs))
		}
		if found {
			deleted = append(deleted, id)
		} else {
			missing = append(missing, id)
		}
	}
	if c.JSON {
		err = t.printJSON(map[string][]string{"deleted": deleted, "notFound": missing})
	} else {
		_, err = fmt.Fprintf(t.out, "deleted %d\n", len(deleted))
	}
	if err == nil && len(missing) > 0 {
		err = errors.New("no memory or conversation has the ID " + strings.Join(missing, ", "))
	}
	return err
}

// deleteOne deletes a memory or a conversation, and reports whether there was one.
func deleteOne(ctx context.Context, server *client.Client, id string) (bool, error) {
	_, err := server.DeleteMemory(ctx, id)
	if err == nil || client.StatusOf(err) != http.StatusNotFound {
		return err == nil, err
	}
	answer, err := server.DeleteConversations(ctx, client.DeleteConversationsRequest{Ids: []string{id}})
	if err != nil {
		return false, err
	}
	return answer.Body.Count > 0, nil
}

type recallCommand struct {
	remoteFlags
	MaxTokens int      `default:"600" help:"Maximum length in tokens, up to 2,000."`
	Question  []string `arg:"" help:"Question in natural language."`
}

// Run prints relevant content from conversations.
func (c *recallCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	found, err := server.Recall(ctx, client.RecallRequest{Query: new(strings.Join(c.Question, " ")), MaxTokens: new(float32(c.MaxTokens))})
	if err != nil {
		return err
	}
	t.noteDegraded(found.Degraded())
	if c.JSON {
		return t.printJSON(found.Body)
	}
	if found.Body.Content == nil || *found.Body.Content == "" {
		t.note("nothing relevant was found")
		return nil
	}
	_, err = fmt.Fprintln(t.out, *found.Body.Content)
	return err
}
