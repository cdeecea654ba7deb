package chatexport

import (
	"html"
	"regexp"
	"strings"
)

// openwebuiChat reads a chat of Open WebUI's export. Its messages are a tree in
// "history"; the list "messages" repeats the branch that the platform shows.
type openwebuiChat struct {
	thread
	listed []node // of the list
}

func openOpenWebUI(limits Limits, c *Conversation) reader {
	return &openwebuiChat{thread: thread{limits: limits, c: c}}
}

func (in *openwebuiChat) element(s *scanner) error {
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id":
			in.c.ExternalID, err = s.text()
		case "title":
			in.c.Title, err = s.text()
		case "created_at":
			in.c.CreatedAt, err = s.time()
		case "updated_at":
			in.c.UpdatedAt, err = s.time()
		case "chat":
			err = s.object(func(name []byte) error { return in.readChat(s, name) })
		case "history", "messages": // of a chat without the record that contains it
			err = in.readChat(s, name)
		default:
			err = s.skip()
		}
		return err
	})
}

func (in *openwebuiChat) readChat(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "title":
		var title string
		if title, err = s.text(); in.c.Title == "" {
			in.c.Title = title
		}
	case "history":
		err = s.object(func(name []byte) (err error) {
			switch string(name) {
			case "currentId":
				in.leaf, err = s.text()
			case "messages":
				err = s.object(func([]byte) error { return in.readMessage(s) })
			default:
				err = s.skip()
			}
			return err
		})
	case "messages":
		if len(in.nodes) > 0 {
			return s.skip()
		}
		err = s.array(func() error { return in.readMessage(s) })
		in.listed, in.nodes, in.size = in.nodes, nil, 0
	default:
		err = s.skip()
	}
	return err
}

// readMessage reads a message with its parent.
func (in *openwebuiChat) readMessage(s *scanner) error {
	n := node{message: new(message)}
	var (
		content blocks
		role    string
		out     lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id":
			n.id, err = s.text()
		case "parentId":
			n.parent, err = s.text()
		case "role":
			role, err = s.text()
		case "timestamp":
			n.message.at, err = s.time()
		case "content":
			err = content.read(s)
		case "files":
			err = readFiles(s, &out)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	content.note(&in.c.Notes)
	n.message.id, n.message.sender = n.id, sender(role, &in.c.Notes)
	out.add(details(content.texts.String()))
	n.message.text = out.String()
	return in.add(n)
}

// finish uses the list if the tree is empty, as in chats of old versions.
func (in *openwebuiChat) finish() error {
	if len(in.nodes) == 0 {
		in.nodes = in.listed
	}
	return in.thread.finish()
}

// Open WebUI writes reasoning and tool calls as HTML into the text of an answer.
var (
	detailsBlock = regexp.MustCompile(`(?s)<details type="(reasoning|tool_calls)"([^>]*)>\s*(?:<summary>[^<]*</summary>)?(.*?)</details>`)
	detailsField = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// details replaces reasoning and tool calls in a text by labels.
func details(text string) string {
	if !strings.Contains(text, "<details type=") {
		return text
	}
	return strings.TrimSpace(detailsBlock.ReplaceAllStringFunc(text, func(found string) string {
		part := detailsBlock.FindStringSubmatch(found)
		var out lines
		if part[1] == "reasoning" {
			out.labeled("thinking", strings.ReplaceAll(html.UnescapeString(strings.TrimSpace(part[3])), "\n> ", "\n"))
			return strings.Replace(out.String(), "[thinking] > ", "[thinking] ", 1)
		}
		var c call
		for _, field := range detailsField.FindAllStringSubmatch(part[2], -1) {
			value := html.UnescapeString(field[2])
			switch field[1] {
			case "name":
				c.name = value
			case "arguments":
				c.input.add(value)
			case "result":
				c.output.add(value)
			}
		}
		c.add(&out)
		return out.String()
	}))
}
