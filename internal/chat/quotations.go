package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// maxQuotations limits the quotations of a change that are compared with originals.
const maxQuotations = 500

// Quotation is a passage of a message that looks like recalled content.
type Quotation struct {
	retrieve.Quotation
	Message int // index in the conversation
	content int // index of the content in the message
}

// Quotations returns the passages that look like recalled content in the messages whose
// text the new units contain. The store finds their originals for Quote.
func (c Change) Quotations() []Quotation {
	var out []Quotation
	for _, i := range retrieve.Affected(len(c.Messages), c.Reindexed()) {
		for n, content := range contents(c.Messages[i].Text) {
			for _, q := range retrieve.Quotations(content) {
				out = append(out, Quotation{q, i, n})
			}
		}
	}
	return out[:min(len(out), maxQuotations)]
}

// Quote sets Quoted from the texts that each quotation may quote.
func (c *Change) Quote(quotations []Quotation, originals [][]retrieve.Original) {
	covered := map[int]map[int][]retrieve.Span{} // by message and content
	for i, q := range quotations {
		if spans := q.Covers(originals[i]); len(spans) > 0 {
			if covered[q.Message] == nil {
				covered[q.Message] = map[int][]retrieve.Span{}
			}
			covered[q.Message][q.content] = append(covered[q.Message][q.content], spans...)
		}
	}
	c.Quoted = map[int][]retrieve.Span{}
	for i, spans := range covered {
		c.Quoted[i] = quotedIn(c.Messages[i].Text, spans)
	}
}

// quotedIn returns the parts of a message of whose contents the spans are covered. The JSON
// of a response is one part, unless it contains anything else.
func quotedIn(text string, covered map[int][]retrieve.Span) []retrieve.Span {
	byStart := func(a, b retrieve.Span) int { return cmp.Compare(a.Start, b.Start) }
	for n, content := range contents(text) {
		slices.SortFunc(covered[n], byStart)
		if content == text {
			return covered[n]
		}
		if !repeated(content, covered[n]) {
			return nil
		}
	}
	return []retrieve.Span{{Start: 0, End: len(text)}}
}

// contents returns the texts that may be recalled content: that of a message or, if it is
// the JSON response of a recall, such as a tool returns it, those in the response.
func contents(text string) []string {
	var response struct {
		recollectionJSON
		Results  []recollectionJSON `json:"results"`
		Degraded bool               `json:"degraded"`
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || !strings.Contains(text, `\n[`) {
		return []string{text}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&response); err != nil || strings.TrimSpace(text[d.InputOffset():]) != "" {
		return []string{text}
	}
	out := []string{response.Content}
	for _, r := range response.Results {
		out = append(out, r.Content)
	}
	return out
}

// recollectionJSON has the members of a Recollection in responses of the API and of MCP tools.
type recollectionJSON struct {
	Query          string          `json:"query"`
	Content        string          `json:"content"`
	Sources        json.RawMessage `json:"sources"`
	TokenCount     int             `json:"tokenCount"`
	ProcessingTime string          `json:"processingTime"`
	Platform       string          `json:"platform"`
	Model          string          `json:"model"`
}

// repeated reports whether the spans contain all of a text but white space.
func repeated(text string, spans []retrieve.Span) bool {
	at := 0
	for _, s := range spans {
		if strings.TrimSpace(text[at:max(at, s.Start)]) != "" {
			return false
		}
		at = max(at, s.End)
	}
	return strings.TrimSpace(text[at:]) == ""
}
