package retrieve

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

var (
	speakerLabel   = regexp.MustCompile(`^(\p{Lu}[\p{L}\p{N}_.-]{1,20}(?: \p{Lu}[\p{L}\p{N}_.-]{1,20})?): `)
	wordOrGenitive = regexp.MustCompile(`[\p{L}\p{N}_]+(?:['’]s\b)?`)
)

// takePerspective embeds the question as the speakers that it names would put it.
func (e *Engine) takePerspective(ctx context.Context, c *comparison) {
	c.speakers()
	if len(c.names) == 0 {
		return
	}
	if v := e.embed(ctx, c.query.Generation, perspective(c.query.Text, c.names)); v != nil {
		c.vector = v
	}
}

// speakers finds the speakers of the candidates and those that the question names.
func (c *comparison) speakers() {
	c.speaker = map[UnitID]string{}
	every := map[string]bool{}
	transcribed := c.transcripts()
	for _, d := range c.all {
		if s := d.label(); s != "" && transcribed(d.Owner, s) {
			c.speaker[d.ID], every[s] = s, true
		}
	}
	c.names = named(c.query.Text, every)
}

// transcripts returns a function that reports whether a label of a conversation is the name of
// a speaker: most candidates of the conversation begin with a label, and another one of it
// does, or another candidate has the same label. Otherwise it may be a "Note: ".
func (c *comparison) transcripts() func(owner, label string) bool {
	labels := map[position]string{}
	for _, d := range c.all {
		if at := (position{d.Owner, d.Seq}); !d.neighbor() {
			labels[at] = cmp.Or(labels[at], d.label())
		}
	}
	messages, labeled, named := map[string]int{}, map[string]int{}, map[string]int{}
	for at, label := range labels {
		messages[at.owner]++
		if label != "" {
			labeled[at.owner]++
			named[label]++
		}
	}
	return func(owner, label string) bool {
		return 2*labeled[owner] > messages[owner] && (labeled[owner] > 1 || named[label] > 1)
	}
}

// label returns the first name that the message of a piece begins with, or "".
func (d Described) label() string {
	if d.Start > 0 {
		return ""
	}
	return speaker(d.Text)
}

// speaker returns the first name that a message begins with, as in an exported group
// chat ("Anna: hello"), in lower case, or "".
func speaker(text string) string {
	m := speakerLabel.FindStringSubmatch(norm.NFC.String(text))
	if m == nil {
		return ""
	}
	name, _, _ := strings.Cut(m[1], " ")
	return strings.ToLower(name)
}

// named returns the speakers that the question names.
func named(question string, speakers map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, w := range plainWords(question) {
		if speakers[w] {
			out[w] = true
		}
	}
	return out
}

// perspective returns the question as the named speakers would put it: "Where does
// Anna work?" becomes "Where does I work?". What they wrote is about "I", so it is
// closer in meaning.
func perspective(question string, names map[string]bool) string {
	return wordOrGenitive.ReplaceAllStringFunc(norm.NFC.String(question), func(w string) string {
		plain, genitive := strings.CutSuffix(strings.ReplaceAll(w, "’", "'"), "'s")
		switch {
		case !names[strings.ToLower(plain)]:
			return w
		case genitive:
			return "my"
		}
		return "I"
	})
}
