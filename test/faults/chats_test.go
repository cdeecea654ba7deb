package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/api/client"
)

// settledChats returns the conversations whose state is known, also deleted ones.
func (l *lane) settledChats() (out []*object[chatState]) {
	for _, o := range l.chats {
		if (o.certain() || o.gone()) && o.id != "" {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object[chatState]) int { return strings.Compare(a.key, b.key) })
	return out
}

// online returns the conversations that were sent online and whose state is known.
func (l *lane) online() []*object[chatState] {
	return slices.DeleteFunc(certain(l.chats), func(o *object[chatState]) bool { return o.id == "" || isImported(o.is[0]) })
}

// isImported reports whether a conversation is from a file. Its title is only its key.
func isImported(s chatState) bool { return !strings.HasPrefix(s.Title, "Talk about ") }

// send sends messages of a conversation; the first is number from.
func (l *lane) send(ctx context.Context, kind string, o *object[chatState], from int, texts []string) (how outcome, late bool) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	request := client.IngestRequest{Conversation: client.IngestConversation{ID: o.key, Title: "Talk about " + o.key + " " + l.owner, CreatedAt: at}}
	for i, text := range texts {
		n := from + i
		role := client.IngestMessageRoleUser
		if n%2 == 1 {
			role = client.IngestMessageRoleAssistant
		}
		request.Conversation.Messages = append(request.Conversation.Messages, client.IngestMessage{
			ID: fmt.Sprint(o.key, "-", n), Role: role, Content: text, CreatedAt: at.Add(time.Duration(n) * time.Minute),
		})
	}
	key := uuid.NewString()
	return l.retry(ctx, kind, o.key, func(ctx context.Context, api *client.Client) error {
		answer, err := api.IngestConversation(ctx, &client.IngestConversationParams{IdempotencyKey: &key}, request)
		if err == nil {
			o.id = answer.Body.ConversationID
		}
		return err
	})
}

// ingest sends a new conversation.
func (l *lane) ingest(ctx context.Context) {
	key := l.newKey()
	o := &object[chatState]{key: key, is: []chatState{{}}}
	l.chats[key] = o
	texts := make([]string, 1+l.rand.IntN(4))
	for i := range texts {
		texts[i] = l.text(key)
	}
	how, late := l.send(ctx, "ingest conversation", o, 0, texts)
	o.late = late
	o.audited("conversation.store", how)
	o.change(how, chatState{Title: "Talk about " + key + " " + l.owner, Messages: strings.Join(texts, "\n")})
	if how == acknowledged {
		l.checkChat(ctx, o)
	}
}

// extend sends a conversation's last message again, changed, and another one.
func (l *lane) extend(ctx context.Context) {
	o := pick(l, l.online())
	if o == nil {
		return
	}
	next := o.is[0]
	all := strings.Split(next.Messages, "\n")
	from := len(all) - 1
	sent := []string{l.text(o.key), l.text(o.key)}
	next.Messages = strings.Join(append(all[:from], sent...), "\n")
	how, late := l.send(ctx, "extend conversation", o, from, sent)
	o.late = o.late || late
	o.audited("conversation.store", how)
	o.change(how, next)
	if how == acknowledged {
		l.checkChat(ctx, o)
	}
}

// exclude excludes or includes a conversation.
func (l *lane) exclude(ctx context.Context) {
	o := pick(l, l.online())
	if o == nil {
		return
	}
	next := o.is[0]
	next.Excluded = !next.Excluded
	api := l.api()
	how := l.do(ctx, "exclude conversation", []string{o.key}, func(ctx context.Context) error {
		answer, err := api.UpdateConversations(ctx, client.UpdateConversationsRequest{Ids: []string{o.id}, Excluded: &next.Excluded})
		if err == nil && answer.Body.Count != 1 {
			l.violate(lost, l.String(), o.key, "exclude: not found")
		}
		return err
	})
	o.audited("conversation.update", how)
	o.change(how, next)
	if how == acknowledged {
		l.checkChat(ctx, o)
	}
}

func (l *lane) deleteChat(ctx context.Context) {
	known := slices.DeleteFunc(l.settledChats(), (*object[chatState]).gone)
	o := pick(l, known)
	if o == nil {
		return
	}
	api := l.api()
	how := l.do(ctx, "delete conversation", []string{o.key}, func(ctx context.Context) error {
		answer, err := api.DeleteConversations(ctx, client.DeleteConversationsRequest{Ids: []string{o.id}})
		if err == nil && answer.Body.Count != 1 {
			l.violate(lost, l.String(), o.key, "delete conversation: not found")
		}
		return err
	})
	o.audited("conversation.delete", how)
	o.change(how, chatState{})
	if how == acknowledged {
		l.checkChat(ctx, o)
	}
}

// importChats uploads an export with some conversations. They are not used afterwards.
func (l *lane) importChats(ctx context.Context) {
	if l.tight { // an import stores what the quota allows
		return
	}
	var keys, ids, texts []string
	for range 1 + l.rand.IntN(4) {
		key := l.newKey()
		keys, ids = append(keys, key), append(ids, uuid.NewString())
		texts = append(texts, l.text(key), l.text(key))
	}
	contentType, body := form("conversations.json", claudeExport(keys, texts, ids), false)
	api := l.api()
	how := l.do(ctx, "import file", keys, func(ctx context.Context) error {
		_, err := api.ImportFile(ctx, nil, contentType, body)
		if client.StatusOf(err) == http.StatusConflict {
			return fmt.Errorf("too many imports: %w", err)
		}
		return err
	})
	for i, key := range keys {
		o := &object[chatState]{key: key, is: []chatState{{}}, late: how == unknown}
		o.change(how, chatState{Title: key, Messages: texts[2*i] + "\n" + texts[2*i+1]})
		l.chats[key] = o
	}
}

// checkChat reads a conversation whose state is known, by its id or by a search. Searches
// find active ones only.
func (l *lane) checkChat(ctx context.Context, o *object[chatState]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	api := l.api()
	if l.rand.IntN(2) == 0 && !l.tight {
		l.searchChat(ctx, api, o)
		return
	}
	var found chatState
	answer, err := api.GetConversation(ctx, &client.GetConversationParams{ConversationID: o.id})
	if err != nil && client.StatusOf(err) != http.StatusNotFound {
		return
	}
	if err == nil {
		found = chatState{Title: answer.Body.Title, Excluded: answer.Body.Status == client.ConversationStatusExcluded}
		texts := make([]string, len(answer.Body.Messages))
		for i, m := range answer.Body.Messages {
			texts[i] = m.Text
			l.mine(m.Text)
		}
		found.Messages = strings.Join(texts, "\n")
	}
	l.verifyChat(o, found, "get")
}

func (l *lane) searchChat(ctx context.Context, api *client.Client, o *object[chatState]) {
	answer, err := api.SearchConversations(ctx, client.SearchRequest{Query: o.key})
	if err != nil {
		return
	}
	var found chatState
	for _, r := range answer.Body.Results {
		l.mine(r.Text)
		if r.ConversationID == o.id {
			found = o.is[0]
			if !strings.Contains(found.Messages, r.Text) {
				found.Messages = r.Text // neither current nor none
			}
		}
	}
	if o.certain() && o.is[0].Excluded {
		if found != (chatState{}) {
			l.violate(reappeared, l.String(), o.key, "a search finds an excluded conversation")
		}
		l.checked(deleteVisibility)
		return
	}
	if o.gone() && slices.ContainsFunc(answer.Body.Results, func(r client.SearchResult) bool { return r.ConversationID == o.id }) {
		found.Title = "found by a search"
	}
	l.verifyChat(o, found, "search")
}

func (l *lane) verifyChat(o *object[chatState], found chatState, how string) {
	if o.gone() {
		l.checked(deleteVisibility)
	} else {
		l.checked(readYourWrite)
	}
	if kind, text := compare(o, found); kind != "" {
		l.violate(kind, l.String(), o.key, "%s: %s", how, text)
	}
}
