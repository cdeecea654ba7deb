package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// start is the time of the first conversation, in seconds since 1970.
const start = 1_672_531_200

// words is the vocabulary of all texts.
var words = strings.Fields(`the a of to and in is for on with that as be are this it from or by an not we can
	if at which has will more when use one each time how what where harbour tram bread flour oven river bridge
	garden tomato winter holiday ticket train museum guitar chord rhythm kettle lantern mountain valley weather
	server database index query latency cluster backup restore schema function variable compiler error pointer
	thread budget invoice contract deadline meeting agenda colleague doctor recipe vitamin marathon bicycle
	repair paint ceiling window insurance passport airport border island ferry whale lighthouse telescope orbit
	planet gravity energy battery solar voltage resistor soldering calendar birthday present grandmother story`)

// generator generates conversations. A conversation depends only on its number, so
// that shards contain the same conversations as a single file.
type generator struct {
	config
	b strings.Builder
	r *rand.Rand
}

func newGenerator(c config) *generator { return &generator{config: c} }

// array writes the conversations with numbers in [from, to).
func (g *generator) array(w io.Writer, from, to int) error {
	for i := from; i < to; i++ {
		separator := ",\n"
		if i == from {
			separator = "["
		}
		if _, err := io.WriteString(w, separator+g.conversation(i)); err != nil {
			return fmt.Errorf("write conversation %d: %w", i, err)
		}
	}
	end := "]\n"
	if from == to {
		end = "[]\n"
	}
	if _, err := io.WriteString(w, end); err != nil {
		return fmt.Errorf("write end: %w", err)
	}
	return nil
}

// conversation returns the JSON of a conversation.
func (g *generator) conversation(i int) string {
	g.r = rand.New(rand.NewPCG(g.seed, uint64(i)))
	g.b.Reset()
	at := float64(start + i*3600)
	// Between half and one and a half times the average size.
	size := int(float64(g.bytes) / float64(g.conversations) * (0.5 + g.r.Float64()))
	fmt.Fprintf(&g.b, `{"title":%q,"create_time":%.6f,"update_time":%.6f,"mapping":{`, g.title(i), at, at+3000)
	fmt.Fprintf(&g.b, `"root-%d":{"id":"root-%d","message":null,"parent":null,"children":[]}`, i, i)
	parent := fmt.Sprintf("root-%d", i)
	parent = g.node(i, -1, parent, "system", "text", "", at, true)
	for n := 0; n == 0 || g.b.Len() < size; n++ {
		asked := at + float64(n)*60
		if n == 1 && i%5 == 0 {
			g.node(i, 1_000_000, parent, "user", "text", g.sentences(2), asked, false)
		}
		parent = g.node(i, 3*n, parent, "user", "text", g.sentences(1+g.r.IntN(3)), asked, false)
		if n%7 == 3 {
			parent = g.node(i, 3*n+2, parent, "assistant", "code", "print("+g.word()+")", asked+5, false)
			parent = g.node(i, 3*n+3_000_000, parent, "tool", "execution_output", g.sentences(1), asked+6, false)
		}
		parent = g.node(i, 3*n+1, parent, "assistant", "text", g.sentences(4+g.r.IntN(12)), asked+20, false)
	}
	fmt.Fprintf(&g.b, `},"moderation_results":[],"current_node":%q,"conversation_id":"conv-%d-%d","is_archived":false,"id":"conv-%d-%d"}`,
		parent, g.seed, i, g.seed, i)
	return g.b.String()
}

// node writes a node and returns its id.
func (g *generator) node(conversation, n int, parent, role, kind, text string, at float64, hidden bool) string {
	id := fmt.Sprintf("%08x-%08x", uint32(conversation), uint32(n))
	content := fmt.Sprintf(`{"content_type":%q,"parts":[%q]}`, kind, text)
	if kind != "text" {
		content = fmt.Sprintf(`{"content_type":%q,"language":"python","text":%q}`, kind, text)
	}
	weight, metadata := 1, `{"model_slug":"model-x","citations":[],"request_id":"r"}`
	if hidden {
		weight, metadata = 0, `{"is_visually_hidden_from_conversation":true}`
	}
	fmt.Fprintf(&g.b, `,%q:{"id":%q,"message":{"id":%q,"author":{"role":%q,"name":null,"metadata":{}},"create_time":%.6f,`+
		`"update_time":null,"content":%s,"status":"finished_successfully","end_turn":true,"weight":%d,"metadata":%s,`+
		`"recipient":"all"},"parent":%q,"children":[]}`, id, id, id, role, at, content, weight, metadata, parent)
	return id
}

func (g *generator) word() string { return words[g.r.IntN(len(words))] }

func (g *generator) title(i int) string {
	return fmt.Sprintf("%s %s %d", g.word(), g.word(), i)
}

// sentences returns n sentences.
func (g *generator) sentences(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		for w := range 6 + g.r.IntN(12) {
			if w > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(g.word())
		}
		b.WriteByte('.')
	}
	return b.String()
}
