package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	scheme       = "mnemo"
	resourceHost = "conversations"
	markdown     = "text/markdown"
	// resourcePage is the number of conversations on a page of resources.
	resourcePage = 50
)

func (e *Endpoint) addResources() {
	const template = scheme + "://" + resourceHost + "/{id}"
	about := sdk.ResourceTemplate{
		Name: "conversation", Title: "A past conversation", MIMEType: markdown, URITemplate: template,
		Description: "A conversation of the user with an assistant, as Markdown. A long conversation ends with the URI of the next page.",
	}
	e.server.AddResourceTemplate(&about, e.readResource)
	page := about
	page.Name, page.URITemplate = "conversation-page", template+"{?cursor}"
	e.server.AddResourceTemplate(&page, e.readResource)
}

// listResources handles resources/list. The SDK supports only resources that are
// the same for all users.
func (e *Endpoint) listResources(c caller, req sdk.Request) (sdk.Result, error) {
	out, err := e.resources(c, req)
	e.Observe("resources/list", err != nil)
	if err != nil {
		return nil, e.protocolError(c.work, err)
	}
	return out, nil
}

// resources lists active conversations, newest first, a page at a time.
func (e *Endpoint) resources(c caller, req sdk.Request) (*sdk.ListResourcesResult, error) {
	offset := 0
	if p, ok := req.GetParams().(*sdk.ListResourcesParams); ok && p != nil && p.Cursor != "" {
		n, err := strconv.Atoi(p.Cursor)
		if err != nil || n < 0 {
			return nil, fault.New(fault.Invalid, "cursor must be the nextCursor of the previous result")
		}
		offset = n
	}
	list, total, err := e.Chats.List(c.work, c.who, chat.ConversationFilter{Status: chat.Active, Offset: offset, Limit: resourcePage})
	if err != nil {
		return nil, err
	}
	out := &sdk.ListResourcesResult{Resources: make([]*sdk.Resource, len(list)), Cacheable: sdk.Cacheable{CacheScope: "private"}}
	for i, conversation := range list {
		name := cmp.Or(title(conversation.Title), "Untitled")
		out.Resources[i] = &sdk.Resource{
			URI: address(conversation.ID, nil), Name: name, Title: name, MIMEType: markdown,
			Description: fmt.Sprintf("%s, %s, %d messages", conversation.Platform, conversation.CreatedAt.UTC().Format("2006-01-02"), conversation.MessageCount),
			Annotations: &sdk.Annotations{LastModified: chat.Stamp(conversation.UpdatedAt)},
		}
	}
	if offset+len(list) < total && len(list) > 0 {
		out.NextCursor = strconv.Itoa(offset + len(list))
	}
	return out, nil
}

// readResource reads a page of a conversation as Markdown.
func (e *Endpoint) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	c := callerOf(ctx)
	text, err := e.markdown(c, req.Params.URI)
	e.Observe("resources/read", err != nil)
	if fault.Is(err, fault.NotFound) {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, e.protocolError(c.work, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: markdown, Text: text}},
		Cacheable: sdk.Cacheable{CacheScope: "private"}}, nil
}

func (e *Endpoint) markdown(c caller, uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fault.New(fault.NotFound, "conversation not found")
	}
	id := strings.TrimPrefix(u.Path, "/")
	out, err := e.read(c.work, call{caller: c}, readIn{ConversationID: id, Cursor: u.Query().Get("cursor"), MaxTokens: mostTokens})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s, %s, %d messages\n", cmp.Or(out.Title, "Untitled"), out.Platform, out.CreatedAt, out.MessageCount)
	for _, m := range out.Messages {
		fmt.Fprintf(&b, "\n## %d. %s, %s\n\n%s\n", m.Index, m.Sender, m.Timestamp, m.Text)
	}
	if out.NextCursor != "" {
		fmt.Fprintf(&b, "\n---\nNext page: %s\n", address(out.ConversationID, &out.NextCursor))
	}
	return b.String(), nil
}

// address returns the URI of a conversation or of a page of it.
func address(id string, cursor *string) string {
	u := url.URL{Scheme: scheme, Host: resourceHost, Path: "/" + id}
	if cursor != nil {
		u.RawQuery = url.Values{"cursor": {*cursor}}.Encode()
	}
	return u.String()
}
