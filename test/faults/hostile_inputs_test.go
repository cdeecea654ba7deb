package faults_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

// hostileInput is an input that is cheap to send and was expensive to answer.
type hostileInput struct {
	name    string
	clients int // that send it at the same time, and again unless once
	prepare func(t *testing.T, v *victim)
	send    func(ctx context.Context, v *victim, client int) (answer string)
	once    bool     // each client sends it once
	want    []string // statuses
}

const (
	longText = 31 << 20
	// indexing is the longest time until a message of that size has its 54,000 vectors.
	indexing = 10 * time.Minute
)

var hostileInputs = []hostileInput{
	{
		name: "1: filter nested 9,900 times", clients: 4, want: []string{"400"},
		send: posts("/mem0/v3/memories/search/", func() string {
			return `{"query":"a","filters":` + strings.Repeat(`{"NOT":`, 9900) + `{"user_id":"a"}` + strings.Repeat("}", 9900) + "}"
		}),
	},
	{
		name: "2: CSV row of 32 Mi columns", clients: 2, want: []string{"failed"},
		send: func(ctx context.Context, v *victim, client int) string {
			row := "Conversation,Time,Author,Message\n" + strings.Repeat(",", 32<<20) + "\n"
			_, status, err := v.importFile(ctx, fmt.Sprintf("%d.csv.gz", client), row)
			return answerOf(status, err)
		},
	},
	{
		name: "3: message with a wide, empty table", clients: 8, want: []string{"200"},
		prepare: func(t *testing.T, v *victim) {
			v.store(t, "table", "|"+strings.Repeat("a|", 2040)+"\n|"+strings.Repeat("-|", 2040)+strings.Repeat("\n|", 4080))
		},
		send: views("table"),
	},
	{
		name: "4: message with a fence and links on a line", clients: 8, want: []string{"200"},
		prepare: func(t *testing.T, v *victim) { v.store(t, "links", "``` `"+strings.Repeat("[a](", 75<<10)) },
		send:    views("links"),
	},
	{
		name: "5: searches in a message of 31 MiB", clients: 24, want: []string{"200", "429"},
		prepare: func(t *testing.T, v *victim) {
			v.store(t, "long", strings.Repeat("We keep lantern7 in the harbour. ", longText/33), "And the spare anchor8 hangs in the loft.")
		},
		send: posts("/api/chat-history/search", func() string { return `{"query":"where is lantern7","limit":100}` }),
	},
	{
		name: "5: searches of the message after it", clients: 24, want: []string{"200", "429"},
		send: posts("/api/chat-history/search", func() string { return `{"query":"where does the spare anchor8 hang"}` }),
	},
	{
		name: "6: 25 connections that do not read that conversation", clients: 25, once: true, want: []string{"200", "429"},
		send: func(ctx context.Context, v *victim, _ int) string { return v.hold(ctx) },
	},
	{
		name: "6: six that read it", clients: 6, want: []string{"200", "429"},
		send: func(ctx context.Context, v *victim, _ int) string {
			return v.request(ctx, http.MethodGet, "/api/chat-history/conversation?conversationId="+v.conversations["long"], nil)
		},
	},
	{
		name: "6: six that view it", clients: 6, want: []string{"200", "429"}, send: views("long"),
	},
	{
		name: "7: query of 840 KB", clients: 4, want: []string{"400", "429"},
		send: posts("/api/search", func() string { return `{"query":"` + strings.Repeat("lantern ", 105_000) + `"}` }),
	},
	{
		name: "8: /mem0 adds of 100 messages of 10 KB", clients: 6, want: []string{"200", "429"},
		send: func(ctx context.Context, v *victim, client int) string {
			v.adds.Add(1)
			var messages []map[string]string
			for i := range 100 {
				text := fmt.Sprintf("%d %d %d ", v.adds.Load(), client, i) + strings.Repeat("we keep the lantern in the harbour ", 290)
				messages = append(messages, map[string]string{"role": "user", "content": text})
			}
			body, err := json.Marshal(map[string]any{"user_id": "user", "infer": false, "messages": messages})
			if err != nil {
				return err.Error()
			}
			return v.request(ctx, http.MethodPost, "/mem0/v3/memories/add/", body)
		},
	},
	{
		name: "9: body of 45 MiB of empty objects", clients: 3, want: []string{"400", "429"},
		send: posts("/api/chat-history/ingest/custom-online", func() string {
			return `{"platform":"custom","conversation":{"id":"c","messages":[{}` + strings.Repeat(",{}", 15<<20) + "]}}"
		}),
	},
	{
		name: "10: recall of 300 tokens from a memory of 32 KB", clients: 4, want: []string{"200", "429"},
		prepare: func(t *testing.T, v *victim) {
			body := `{"text":"` + strings.Repeat("The mast of lantern9 is oak. ", 32_700/29) + `"}`
			if status, out, err := v.hostile.send(t.Context(), http.MethodPost, "/api/memory", []byte(body)); status != http.StatusOK {
				t.Fatalf("%d %s %v", status, out, err)
			}
		},
		send: posts("/mcp", func() string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall_chat_history",` +
				`"arguments":{"query":"which mast has lantern9","maxTokens":300}}}`
		}),
	},
}

// posts returns a function that posts a body.
func posts(path string, body func() string) func(context.Context, *victim, int) string {
	return func(ctx context.Context, v *victim, _ int) string {
		return v.request(ctx, http.MethodPost, path, []byte(body()), "Accept", "application/json, text/event-stream")
	}
}

// views returns a function that opens the page of a conversation in the dashboard.
func views(title string) func(context.Context, *victim, int) string {
	return func(ctx context.Context, v *victim, _ int) string {
		return v.request(ctx, http.MethodGet, "/chats/"+v.conversations[title], nil, "Cookie", v.cookie)
	}
}

// request sends a request of the hostile user and describes the response.
func (v *victim) request(ctx context.Context, method, path string, body []byte, headers ...string) string {
	status, out, err := v.hostile.send(ctx, method, path, body, headers...)
	if err != nil {
		return err.Error()
	}
	size := ""
	if status == http.StatusOK {
		size = fmt.Sprintf(" with %d KiB", len(out)>>10)
	}
	return fmt.Sprint(status) + size
}

// hold requests the long conversation and returns the status. It reads nothing else, and ends the connection with ctx.
func (v *victim) hold(ctx context.Context) string {
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(v.server.URL, "http://"))
	if err != nil {
		return err.Error()
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /api/chat-history/conversation?conversationId=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
		v.conversations["long"], v.hostile.token)
	if err != nil {
		return err.Error()
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil {
		return err.Error()
	}
	return string(status[len("HTTP/1.1 "):])
}

// store imports a conversation of these messages, and waits until it is indexed.
func (v *victim) store(t *testing.T, title string, texts ...string) {
	t.Helper()
	nodes := map[string]any{}
	for i, text := range texts {
		nodes[fmt.Sprint(i)] = map[string]any{"parent": fmt.Sprint(i - 1), "message": map[string]any{
			"id": fmt.Sprint(i), "author": map[string]any{"role": "user"}, "create_time": 1746800000 + i,
			"content": map[string]any{"content_type": "text", "parts": []string{text}},
		}}
	}
	export, err := json.Marshal([]map[string]any{{
		"id": title, "title": title, "create_time": 1746800000, "current_node": fmt.Sprint(len(texts) - 1), "mapping": nodes,
	}})
	if err != nil {
		t.Fatal(err)
	}
	id, status, err := v.importFile(t.Context(), title+".json.gz", string(export))
	if err != nil || status != "done" {
		t.Fatalf("import of %s: %s %v", title, status, err)
	}
	installation.Eventually(t, indexing, func() string {
		var missing int
		if err := v.Owner.QueryRow(t.Context(), "select count(*) from units where embedding is null and active").Scan(&missing); err != nil {
			return err.Error()
		}
		if missing > 0 {
			return fmt.Sprintf("%d units have no vector", missing)
		}
		return ""
	})
	var list struct{ Items []struct{ ID string } }
	code, out, err := v.hostile.send(t.Context(), http.MethodGet, "/api/chat-history/chats?importId="+url.QueryEscape(id), nil)
	if err != nil || json.Unmarshal(out, &list) != nil || len(list.Items) != 1 {
		t.Fatalf("list: %d %s %v", code, out, err)
	}
	v.conversations[title] = list.Items[0].ID
}

// importFile imports a compressed file of the hostile user, and returns the final status of the import.
func (v *victim) importFile(ctx context.Context, name, content string) (id, status string, err error) {
	var body, compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := io.WriteString(z, content); err != nil {
		return "", "", err
	}
	if err := z.Close(); err != nil {
		return "", "", err
	}
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name)
	if err != nil {
		return "", "", err
	}
	_, _ = part.Write(compressed.Bytes())
	_ = form.Close()
	code, out, err := v.hostile.send(ctx, http.MethodPost, "/api/chat-history/import", body.Bytes(),
		"Content-Type", form.FormDataContentType())
	var started struct{ ImportID, Status string }
	if err != nil || json.Unmarshal(out, &started) != nil || started.ImportID == "" {
		return "", "", fmt.Errorf("import: %d %s %w", code, out, err)
	}
	for ctx.Err() == nil {
		if _, out, err = v.hostile.send(ctx, http.MethodGet, "/api/chat-history/imports/"+started.ImportID, nil); err != nil {
			return "", "", err
		}
		if err := json.Unmarshal(out, &started); err != nil {
			return "", "", fmt.Errorf("import: %s %w", out, err)
		}
		if started.Status == "done" || started.Status == "failed" {
			return started.ImportID, started.Status, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return "", "", context.Cause(ctx)
}

func answerOf(status string, err error) string {
	if err != nil {
		return err.Error()
	}
	return status
}
