package retrievalbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// units is a history as hack/ranking learns from it.
type units struct {
	ID        string          `json:"id"`
	Set       string          `json:"set"`
	Chats     []unitsChat     `json:"convs"`
	Units     []unitsUnit     `json:"units"`
	Questions []unitsQuestion `json:"qs"`
}

type unitsChat struct {
	Messages []unitsMessage `json:"messages"`
}

type unitsMessage struct {
	ID   string      `json:"id"`
	Role chat.Sender `json:"role"`
	Text string      `json:"text"`
	Time time.Time   `json:"time"`
}

// unitsUnit is a piece of a message, which is named by its index and that of its conversation.
type unitsUnit struct {
	Chat    int    `json:"c"`
	Message int    `json:"m"`
	Text    string `json:"t"`
}

type unitsQuestion struct {
	Text     string              `json:"q"`
	Category string              `json:"cat"`
	Sources  []string            `json:"ev"`
	Groups   map[string][]string `json:"groups,omitempty"`
}

// WriteUnits writes the histories of dataset files as the JSON from which hack/ranking learns. The pieces of a message
// are those that the server searches.
func WriteUnits(w io.Writer, paths ...string) error {
	out := []units{}
	known := map[string]bool{}
	for _, path := range paths {
		d, err := load(path)
		if err != nil {
			return err
		}
		for i, h := range d.histories {
			u, err := h.units()
			if err != nil {
				return fmt.Errorf("%s, item %d: %w", d.name, i, err)
			}
			u.Set = strings.ToLower(d.format)
			u.ID = strings.ReplaceAll(cmp.Or(h.id, fmt.Sprintf("%s-%d", d.name, i)), "/", "-") // names files
			if known[u.ID] {
				return fmt.Errorf("%s, item %d: another history has the id %s", d.name, i, u.ID)
			}
			known[u.ID] = true
			out = append(out, u)
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("write units: %w", err)
	}
	return nil
}

func (h history) units() (units, error) {
	out := units{Chats: []unitsChat{}, Units: []unitsUnit{}, Questions: []unitsQuestion{}}
	for c, stored := range h.chats {
		messages := []unitsMessage{}
		for i, m := range stored.messages {
			sender, ok := chat.ParseSender(m.role)
			if !ok {
				return out, fmt.Errorf("message %s has the unknown role %q", m.id, m.role)
			}
			messages = append(messages, unitsMessage{ID: m.id, Role: sender, Text: m.text, Time: m.at})
			for _, s := range retrieve.Split(m.text) {
				if piece := strings.TrimSpace(m.text[s.Start:s.End]); piece != "" {
					out.Units = append(out.Units, unitsUnit{Chat: c, Message: i, Text: piece})
				}
			}
		}
		out.Chats = append(out.Chats, unitsChat{messages})
	}
	for _, q := range h.questions {
		out.Questions = append(out.Questions, unitsQuestion{
			Text: q.text, Category: q.category, Sources: append([]string{}, q.sources...), Groups: q.groups(),
		})
	}
	return out, nil
}

// groups returns the sources by their part in an update or a contradiction.
func (q question) groups() map[string][]string {
	out := map[string][]string{}
	for name, ids := range map[string][]string{
		originalInfo: q.older, updatedInfo: q.newer, firstStatement: q.first, secondStatement: q.second,
	} {
		if len(ids) > 0 {
			out[name] = ids
		}
	}
	return out
}
