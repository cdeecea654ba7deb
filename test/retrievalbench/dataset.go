package retrievalbench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dataset is a file of histories with questions about them.
type dataset struct {
	name, format, hash string
	histories          []history
}

// history is everything that one user said, with questions about it.
type history struct {
	id        string
	chats     []conversation
	questions []question
}

type conversation struct {
	id       string
	at       time.Time
	messages []message
}

type message struct {
	id, role, text string
	at             time.Time
}

// add appends a message of a day. In the order of the file, each is a second later.
func (c *conversation) add(id, role, text string, day time.Time) {
	at := day.Add(time.Duration(len(c.messages)) * time.Second)
	c.messages = append(c.messages, message{id: id, role: role, text: text, at: at})
}

type question struct {
	category, text string
	// sources are the ids of the messages that hold the answer; none if the
	// question is unanswerable.
	sources []string
	// older and newer are the sources of an updated fact, first and second those of a
	// contradiction.
	older, newer, first, second []string
}

// load reads a file in either format.
func load(path string) (dataset, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return dataset{}, fmt.Errorf("read dataset: %w", err)
	}
	sum := sha256.Sum256(raw)
	d := dataset{name: filepath.Base(path), hash: hex.EncodeToString(sum[:6])}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return dataset{}, fmt.Errorf("parse %s: %w", d.name, err)
	}
	for i, item := range items {
		var h history
		switch {
		case item["conversation"] != nil && item["qa"] != nil:
			d.format = "LoCoMo"
			h, err = parseLoCoMo(item)
		case item["sessions"] != nil && item["probes"] != nil:
			d.format = "BEAM"
			h, err = parseBEAM(item)
		default:
			err = fmt.Errorf("neither LoCoMo (conversation, qa) nor BEAM (sessions, probes)")
		}
		if err != nil {
			return dataset{}, fmt.Errorf("%s, item %d: %w", d.name, i, err)
		}
		d.histories = append(d.histories, h.normalized())
	}
	return d, nil
}

// normalized returns the history without blank messages, and without sources that
// are not in it. A question of which no source is left is dropped.
func (h history) normalized() history {
	known := map[string]bool{}
	for i, c := range h.chats {
		var kept []message
		for _, m := range c.messages {
			if strings.TrimSpace(m.text) != "" {
				kept = append(kept, m)
				known[m.id] = true
			}
		}
		h.chats[i].messages = kept
	}
	var questions []question
	for _, q := range h.questions {
		var sources []string
		for _, s := range q.sources {
			if known[s] {
				sources = append(sources, s)
			}
		}
		if len(q.sources) > 0 && len(sources) == 0 {
			continue
		}
		q.sources = sources
		questions = append(questions, q)
	}
	h.questions = questions
	return h
}
