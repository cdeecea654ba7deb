package dashboard

import (
	"context"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// titleText is the maximum length of a title made from a message, bytes.
const titleText = 80

// titles returns the title of each conversation by id. An untitled conversation is named
// after its first message; it has no title if that has no words.
func (d *Dashboard) titles(ctx context.Context, who *tenant.Session, list []chat.Conversation) (map[string]string, error) {
	out := make(map[string]string, len(list))
	var untitled []string
	for _, c := range list {
		if _, known := out[c.ID]; known {
			continue
		}
		if out[c.ID] = strings.TrimSpace(c.Title); out[c.ID] == "" {
			untitled = append(untitled, c.ID)
		}
	}
	if len(untitled) == 0 {
		return out, nil
	}
	openings, err := d.Chats.Openings(ctx, who.Identity, untitled)
	if err != nil {
		return nil, err
	}
	for id, text := range openings {
		if title := titleOf(text); title != "" {
			out[id] = title
		}
	}
	return out, nil
}

// markup are the characters of Markdown that a title omits.
var markup = strings.NewReplacer("**", "", "__", "", "`", "")

// titleOf returns the first words of a message, without Markdown.
func titleOf(text string) string {
	line := strings.Trim(markup.Replace(firstLine(text)), "#*_> ")
	return excerpt(titleText, strings.Join(strings.Fields(line), " "))
}

// firstLine returns the first line with text.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "#*_`>-= ") != "" {
			return line
		}
	}
	return ""
}
