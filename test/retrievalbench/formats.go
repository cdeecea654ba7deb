package retrievalbench

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locomoCategories are the names of LoCoMo's numbered categories. Questions of the
// fifth have sources but no answer; they are omitted.
var locomoCategories = map[int]string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}

var (
	sessionKey = regexp.MustCompile(`^session_(\d+)$`)
	sourceID   = regexp.MustCompile(`D:?(\d+):(\d+)`)
)

// parseLoCoMo parses a conversation of two people over several sessions. A message
// begins with its speaker's name, as in an exported group chat.
func parseLoCoMo(item map[string]json.RawMessage) (history, error) {
	var h history
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(item["conversation"], &parts); err != nil {
		return h, fmt.Errorf("parse conversation: %w", err)
	}
	_ = json.Unmarshal(item["sample_id"], &h.id) // optional
	var first string
	if err := json.Unmarshal(parts["speaker_a"], &first); err != nil {
		return h, fmt.Errorf("parse speaker_a: %w", err)
	}
	for key, raw := range parts {
		if !sessionKey.MatchString(key) {
			continue
		}
		c, err := parseSession(key, raw, parts[key+"_date_time"], first)
		if err != nil {
			return h, err
		}
		h.chats = append(h.chats, c)
	}
	slices.SortFunc(h.chats, func(a, b conversation) int { return a.at.Compare(b.at) })
	err := h.parseQA(item["qa"])
	return h, err
}

func parseSession(key string, raw, at json.RawMessage, first string) (conversation, error) {
	c := conversation{id: key}
	var turns []struct {
		Speaker, Text string
		ID            string `json:"dia_id"`
	}
	var written string
	if err := json.Unmarshal(raw, &turns); err != nil {
		return c, fmt.Errorf("parse %s: %w", key, err)
	}
	if err := json.Unmarshal(at, &written); err != nil {
		return c, fmt.Errorf("parse the date of %s: %w", key, err)
	}
	var err error
	if c.at, err = time.Parse("3:04 pm on 2 January, 2006", strings.TrimSpace(written)); err != nil {
		return c, fmt.Errorf("parse the date of %s: %w", key, err)
	}
	for _, t := range turns {
		role := "assistant"
		if t.Speaker == first {
			role = "human"
		}
		c.add(t.ID, role, t.Speaker+": "+t.Text, c.at)
	}
	return c, nil
}

func (h *history) parseQA(raw json.RawMessage) error {
	var list []struct {
		Question string
		Evidence []string
		Category int
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("parse qa: %w", err)
	}
	for _, item := range list {
		name := locomoCategories[item.Category]
		if name == "" {
			continue
		}
		q := question{category: name, text: item.Question}
		for _, evidence := range item.Evidence {
			for _, m := range sourceID.FindAllStringSubmatch(evidence, -1) { // some are malformed
				q.sources = append(q.sources, "D"+m[1]+":"+m[2])
			}
		}
		slices.Sort(q.sources)
		q.sources = slices.Compact(q.sources)
		if len(q.sources) > 0 {
			h.questions = append(h.questions, q)
		}
	}
	return nil
}

// parseBEAM parses sessions of a user and an assistant, with probes. A message without
// a date is from the day of the message before it.
func parseBEAM(item map[string]json.RawMessage) (history, error) {
	var h history
	_ = json.Unmarshal(item["id"], &h.id) // optional
	var sessions [][]struct {
		ID               int
		Role, Text, Date string
	}
	if err := json.Unmarshal(item["sessions"], &sessions); err != nil {
		return h, fmt.Errorf("parse sessions: %w", err)
	}
	for i, s := range sessions {
		c := conversation{id: "session_" + strconv.Itoa(i+1)}
		var day time.Time
		for j, m := range s {
			if m.Date != "" || j == 0 {
				var err error
				if day, err = time.Parse(time.DateOnly, m.Date); err != nil {
					return h, fmt.Errorf("parse the date of message %d: %w", m.ID, err)
				}
			}
			if j == 0 {
				c.at = day
			}
			c.add(strconv.Itoa(m.ID), m.Role, m.Text, day)
		}
		h.chats = append(h.chats, c)
	}
	err := h.parseProbes(item["probes"])
	return h, err
}

// Groups of the sources of a probe.
const (
	originalInfo    = "original_info"
	updatedInfo     = "updated_info"
	firstStatement  = "first_statement"
	secondStatement = "second_statement"
)

func (h *history) parseProbes(raw json.RawMessage) error {
	var probes []struct {
		Category, Question string
		Sources            []int
		Groups             map[string][]int
	}
	if err := json.Unmarshal(raw, &probes); err != nil {
		return fmt.Errorf("parse probes: %w", err)
	}
	for _, p := range probes {
		h.questions = append(h.questions, question{
			category: p.Category, text: p.Question, sources: ids(p.Sources),
			older: ids(p.Groups[originalInfo]), newer: ids(p.Groups[updatedInfo]),
			first: ids(p.Groups[firstStatement]), second: ids(p.Groups[secondStatement]),
		})
	}
	return nil
}

func ids(numbers []int) []string {
	var out []string
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	return out
}
