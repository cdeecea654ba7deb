package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The ids in the examples of the contract.
const (
	exampleMemoryID       = "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"
	exampleSimilarID      = "0196b2f6-1f4c-7aa0-8c55-7d3e1b9f2a44"
	exampleMergedID       = "0196b2f6-2c7d-7e15-9b30-1a4c8f6d0e52"
	exampleConversationID = "0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"
	exampleImportID       = "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"
	exampleBucketID       = 12
	exampleTokenID        = "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08"
)

// Every route of the contract has examples of its parameters, body and responses.
// They match their schemas, and the example requests succeed on a server with the
// data that they refer to.
func TestExamples(t *testing.T) {
	t.Parallel()
	c := theContract()
	for _, route := range c.routes {
		op, _ := c.at(route.pointer()...)
		id, _ := op["operationId"].(string)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			for _, status := range c.statuses(route) {
				_, where := c.at(append(route.pointer(), "responses", fmt.Sprint(status))...)
				c.checkExamples(t, where)
			}
			path, headers := c.exampleParameters(t, route, op)
			body := ""
			for kind, example := range c.checkExamples(t, append(route.pointer(), "requestBody")) {
				var contentType string
				body, contentType = encoded(t, kind, example)
				headers = append(headers, "Content-Type", contentType)
			}
			h := newTestServer(t)
			h.stores.holdExamples(tenant.Scope{Tenant: "one", User: 1})
			token := h.alice
			if strings.HasPrefix(path, "/api/users") {
				token = h.application(t, 50, tenant.AccessAdmin)
				h.stores.acting = []string{"customer-42"}
			}
			h.stores.tokens[tenant.Scope{Tenant: "one", User: 1}] = []tenant.UserToken{{ID: exampleTokenID, Name: "Phone", Access: tenant.AccessRead}}
			if got := h.call(t, token, route.method, path, body, headers...); got.status >= 300 {
				t.Errorf("the example request %s %s %s: %d %s", route.method, path, body, got.status, got.body)
			}
		})
	}
}

// checkExamples validates the examples of a body and returns them by media type.
func (c *contract) checkExamples(t *testing.T, body []string) map[string]any {
	t.Helper()
	out := map[string]any{}
	content, where := c.at(append(body, "content")...)
	for kind := range content {
		media, where := c.at(append(where, kind)...)
		if schema, _ := media["schema"].(map[string]any); schema["format"] == "binary" {
			continue // a file
		}
		example, ok := media["example"]
		if !ok {
			t.Errorf("%s has no example", strings.Join(where, " "))
			continue
		}
		if err := c.check(example, append(where, "schema")...); err != nil {
			t.Errorf("the example of %s: %v", strings.Join(where, " "), err)
		}
		out[kind] = example
	}
	return out
}

// encoded encodes an example body.
func encoded(t *testing.T, kind string, example any) (body, contentType string) {
	t.Helper()
	if kind != "multipart/form-data" {
		raw, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw), kind
	}
	var b strings.Builder
	form := multipart.NewWriter(&b)
	fields, _ := example.(map[string]any)
	for name, value := range fields {
		create := form.CreateFormField
		if name == "file" {
			create = func(name string) (io.Writer, error) { return form.CreateFormFile(name, "conversations.json") }
		}
		part, err := create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(part, value)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), form.FormDataContentType()
}

// exampleParameters validates the example parameters of a route and returns the
// resulting path and headers.
func (c *contract) exampleParameters(t *testing.T, route contractRoute, op map[string]any) (path string, headers []string) {
	t.Helper()
	path = route.pattern
	query := url.Values{}
	list, _ := op["parameters"].([]any)
	for i, entry := range list {
		parameter, _ := entry.(map[string]any)
		name, _ := parameter["name"].(string)
		example, ok := parameter["example"]
		if !ok {
			t.Errorf("the parameter %s has no example", name)
			continue
		}
		if err := c.checkParameter(example, route, i); err != nil {
			t.Errorf("the example of the parameter %s: %v", name, err)
		}
		switch text := fmt.Sprint(example); parameter["in"] {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(text))
		case "query":
			query.Set(name, text)
		case "header":
			headers = append(headers, name, text)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, headers
}

func (c *contract) checkParameter(example any, route contractRoute, index int) error {
	return c.check(example, append(route.pointer(), "parameters", fmt.Sprint(index), "schema")...)
}

// holdExamples creates the data that the examples refer to.
func (f *fakeStores) holdExamples(scope tenant.Scope) {
	u, end, _ := f.begin(scope)
	defer end()
	u.buckets = append(u.buckets, memory.Bucket{ID: exampleBucketID, Name: "Trips", Memories: 1})
	u.memories = []memory.Memory{{ID: exampleMemoryID, Seq: 1, BucketID: exampleBucketID, BucketName: "Trips",
		Text: "2025-05-09 Prefers the window seat on trains", Version: 1, Source: "cli", CreatedAt: noon, UpdatedAt: noon}, {ID: exampleSimilarID, Seq: 2}}
	u.merged = []memory.Memory{{ID: exampleMergedID, Seq: 3, MergedInto: exampleMemoryID}}
	u.conversations = []chat.Conversation{{ID: exampleConversationID, ExternalID: "c-0", Platform: "custom", Title: "Night train to Vienna",
		Status: chat.Active, MessageCount: 1, CreatedAt: noon, UpdatedAt: noon}}
	u.imports = []importer.Import{{ID: exampleImportID, Platform: "chatgpt", Status: importer.Done, StartedAt: noon, FinishedAt: noon, Version: 1}}
	u.messages[exampleConversationID] = []chat.Message{{ExternalID: "m-1", Sender: chat.Human, Text: "Which seat should I book?", CreatedAt: noon}}
}
