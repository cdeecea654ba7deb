package faults_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/api/client"
)

// checkAny reads a random object.
func (l *lane) checkAny(ctx context.Context) {
	if l.rand.IntN(2) == 0 {
		if o := pick(l, l.settledChats()); o != nil {
			l.checkChat(ctx, o)
		}
		return
	}
	var settled []*object[memoryState]
	for _, o := range l.memories {
		if (o.certain() || o.gone()) && o.id != "" {
			settled = append(settled, o)
		}
	}
	slices.SortFunc(settled, func(a, b *object[memoryState]) int { return strings.Compare(a.key, b.key) })
	if o := pick(l, settled); o != nil {
		l.checkMemory(ctx, o)
	}
}

// checkMemory reads a memory whose state is known, by its id, by a search or in the list
// of the latest.
func (l *lane) checkMemory(ctx context.Context, o *object[memoryState]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var found memoryState
	api, how := l.api(), l.rand.IntN(3)
	switch how {
	case 0:
		answer, err := api.GetMemory(ctx, o.id)
		if err != nil && client.StatusOf(err) != http.StatusNotFound {
			return
		}
		if err == nil {
			found = memoryState{Text: answer.Body.Text, Version: answer.Body.Version, Bucket: bucketName(answer.Body.Metadata.BucketName)}
			if into := answer.Body.MergedInto; into != nil {
				found.Merged = *into
			}
		}
	default:
		params := &client.ListMemoriesParams{Query: &o.key}
		if how == 2 {
			params = &client.ListMemoriesParams{All: new(true)}
		}
		answer, err := api.ListMemories(ctx, params)
		if err != nil || answer.Body.NextSkip != nil && how == 2 {
			return
		}
		found = l.find(o, answer.Body.Memories)
		if merged := o.certain() && hidden(o); merged && found == (memoryState{}) {
			found = o.is[0]
		}
	}
	l.verify(o, found, []string{"get", "search", "list"}[how])
}

// find returns the state of an object in a list of memories, in which it checks each text.
func (l *lane) find(o *object[memoryState], list []client.Memory) (found memoryState) {
	for _, m := range list {
		l.mine(m.Text)
		if m.ID == o.id {
			found = memoryState{Text: m.Text, Version: o.is[0].Version, Bucket: bucketName(m.Metadata.BucketName)}
			continue
		}
		key, _, _ := strings.Cut(m.Text, " ")
		if other := l.memories[key]; other != nil && hidden(other) {
			l.violate(reappeared, l.String(), key, "was deleted or merged, but a list contains %q", m.Text)
		}
	}
	return found
}

// mine reports a text of another user.
func (l *lane) mine(text string) {
	if !strings.Contains(text, l.owner) {
		l.violate(foreign, l.String(), "", "a response contains %q", text[:min(len(text), 120)])
	}
}

func (l *lane) verify(o *object[memoryState], found memoryState, how string) {
	if o.gone() {
		l.checked(deleteVisibility)
	} else {
		l.checked(readYourWrite)
	}
	if kind, text := compare(o, found); kind != "" {
		l.violate(kind, l.String(), o.key, "%s: %s", how, text)
	}
}

// bucketName returns the name in the model.
func bucketName(name string) string {
	if name == "General" {
		return ""
	}
	return name
}
