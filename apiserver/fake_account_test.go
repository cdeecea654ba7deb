package apiserver

import (
	"context"
	"iter"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type fakeAccounts struct{ *fakeStores }

func (f fakeAccounts) Snapshot(_ context.Context, scope tenant.Scope) (*account.Snapshot, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return nil, err
	}
	messages := int64(0)
	for _, list := range u.messages {
		messages += int64(len(list))
	}
	return &account.Snapshot{Content: fakeContent{*u}, At: noon, Close: func() {}, Counts: account.Counts{
		Buckets: int64(len(u.buckets)), Memories: int64(len(u.memories)), Conversations: int64(len(u.conversations)), Messages: messages,
	}}, nil
}

func (f fakeAccounts) BeginPurge(_ context.Context, scope tenant.Scope) (account.PurgeCutoff, error) {
	_, end, err := f.begin(scope)
	defer end()
	return account.PurgeCutoff{}, err
}

func (f fakeAccounts) Purge(_ context.Context, scope tenant.Scope, _ account.PurgeCutoff) (account.Purged, error) {
	u, end, err := f.begin(scope)
	defer end()
	out := account.Purged{Memories: len(u.memories), Conversations: len(u.conversations), Done: true}
	if err != nil {
		return account.Purged{}, err
	}
	*u = fakeUser{messages: map[string][]chat.Message{}, buckets: []memory.Bucket{{ID: u.buckets[0].ID, Name: memory.DefaultBucket, Default: true}}}
	return out, nil
}

// fakeContent is the exported data of a user.
type fakeContent struct{ fakeUser }

func (u fakeContent) Buckets() iter.Seq2[account.Bucket, error] {
	return each(u.buckets, func(b memory.Bucket) account.Bucket {
		return account.Bucket{ID: b.ID, Name: b.Name, Description: b.Description, Default: b.Default, CreatedAt: noon}
	})
}

func (u fakeContent) Memories() iter.Seq2[account.Memory, error] {
	return each(u.memories, func(m memory.Memory) account.Memory {
		return account.Memory{ID: m.ID, Bucket: m.BucketID, Text: m.Text, Source: m.Source, Version: m.Version,
			CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, EditedAt: m.UpdatedAt}
	})
}

func (fakeContent) Versions() iter.Seq2[account.Version, error] {
	return func(func(account.Version, error) bool) {}
}

func (u fakeContent) Conversations() iter.Seq2[chat.Conversation, error] {
	return each(u.conversations, func(c chat.Conversation) chat.Conversation { return c })
}

func (u fakeContent) Messages() iter.Seq2[account.Message, error] {
	var all []account.Message
	for _, c := range u.conversations {
		for _, m := range u.messages[c.ID] {
			all = append(all, account.Message{Conversation: c.ID, Message: m})
		}
	}
	return each(all, func(m account.Message) account.Message { return m })
}

func each[A, B any](list []A, f func(A) B) iter.Seq2[B, error] {
	list = slices.Clone(list)
	return func(yield func(B, error) bool) {
		for _, a := range list {
			if !yield(f(a), nil) {
				return
			}
		}
	}
}
