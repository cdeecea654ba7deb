package faults_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/mnemo-dev/mnemo/api/client"
)

// anyMemory returns a memory whose state is known and that is not merged; nil if there is none.
func (l *lane) anyMemory() *object[memoryState] { return pick(l, l.listed()) }

// pick returns a random object, preferably a recent one; nil if there is none.
func pick[S comparable](l *lane, from []*object[S]) *object[S] {
	switch {
	case len(from) == 0:
		return nil
	case l.rand.IntN(2) == 0:
		return from[len(from)-1]
	}
	return from[l.rand.IntN(len(from))]
}

func (l *lane) createMemory(ctx context.Context) {
	if o, how := l.create(ctx); how == acknowledged {
		l.checkMemory(ctx, o)
	}
}

func (l *lane) create(ctx context.Context) (*object[memoryState], outcome) {
	key := l.newKey()
	o := &object[memoryState]{key: key, is: []memoryState{{}}}
	l.memories[key] = o
	next := memoryState{Text: l.text(key), Version: 1}
	request := client.CreateMemoryRequest{Text: next.Text}
	if b := pick(l, certain(l.buckets)); b != nil && l.rand.IntN(2) == 0 {
		id, err := strconv.ParseInt(b.id, 10, 64)
		if err == nil {
			request.BucketID, next.Bucket = &id, b.is[0]
		}
	}
	how, late := l.retry(ctx, "create memory", key, func(ctx context.Context, api *client.Client) error {
		answer, err := api.CreateMemory(ctx, &client.CreateMemoryParams{IdempotencyKey: &key}, request)
		if err == nil {
			o.id = answer.Body.MemoryID
		}
		return err
	})
	o.late = late
	o.audited("memory.create", how)
	o.change(how, next)
	return o, how
}

// createTwice sends a request twice at the same time: it is performed once.
func (l *lane) createTwice(ctx context.Context) {
	key := l.newKey()
	o := &object[memoryState]{key: key, is: []memoryState{{}}}
	l.memories[key] = o
	next := memoryState{Text: l.text(key), Version: 1}
	ids, hows, wait := make([]string, 2), make([]outcome, 2), sync.WaitGroup{}
	for i, api := range []*client.Client{l.api(), l.api()} {
		wait.Go(func() {
			hows[i] = l.do(ctx, "create memory (twice)", []string{key}, func(ctx context.Context) error {
				answer, err := api.CreateMemory(ctx, &client.CreateMemoryParams{IdempotencyKey: &key}, client.CreateMemoryRequest{Text: next.Text})
				if err == nil {
					ids[i] = answer.Body.MemoryID
				}
				return err
			})
		})
	}
	wait.Wait()
	o.late = slices.Contains(hows, unknown)
	switch {
	case slices.Contains(hows, acknowledged):
		o.id = max(ids[0], ids[1])
		o.audited("memory.create", acknowledged)
		o.set(next)
		if min(ids[0], ids[1]) != "" && ids[0] != ids[1] {
			l.violate(partial, l.String(), key, "one idempotency key stored memories %v", ids)
		}
		l.checkMemory(ctx, o)
	case slices.Contains(hows, unknown):
		o.maybe(next)
	}
}

func (l *lane) updateMemory(ctx context.Context) {
	o := l.anyMemory()
	if o == nil {
		return
	}
	next := memoryState{Text: l.text(o.key), Version: o.is[0].Version + 1, Bucket: o.is[0].Bucket}
	api := l.api()
	how := l.do(ctx, "update memory", []string{o.key}, func(ctx context.Context) error {
		answer, err := api.UpdateMemory(ctx, client.UpdateMemoryRequest{MemoryID: &o.id, Text: &next.Text})
		if err == nil && answer.Body.Version != nil && *answer.Body.Version != next.Version {
			l.violate(lost, l.String(), o.key, "update returned version %d, want %d", *answer.Body.Version, next.Version)
		}
		return err
	})
	o.audited("memory.update", how)
	o.change(how, next)
	if how == acknowledged {
		l.checkMemory(ctx, o)
	}
}

func (l *lane) deleteMemory(ctx context.Context) {
	o := l.anyMemory()
	if o == nil {
		return
	}
	api := l.api()
	how := l.do(ctx, "delete memory", []string{o.key}, func(ctx context.Context) error {
		_, err := api.DeleteMemory(ctx, o.id)
		return err
	})
	l.remove(how, o)
	if how == acknowledged {
		l.checkMemory(ctx, o)
	}
}

// several returns up to n memories whose state is known and that are not merged.
func (l *lane) several(n int) (out []*object[memoryState], keys, ids []string) {
	all := l.listed()
	l.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	out = all[:min(n, len(all))]
	keys, ids = namesOf(out)
	return out, keys, ids
}

func (l *lane) deleteMemories(ctx context.Context) {
	objects, keys, ids := l.several(2 + l.rand.IntN(6))
	if len(objects) == 0 {
		return
	}
	api := l.api()
	how := l.do(ctx, "delete memories", keys, func(ctx context.Context) error {
		answer, err := api.DeleteMemories(ctx, client.DeleteMemoriesRequest{MemoryIds: ids})
		if err != nil {
			return err
		}
		for _, e := range answer.Body.Errors {
			if e.MemoryID == "postgres_bulk" {
				return errors.New(e.Error)
			}
		}
		if int(answer.Body.DeletedCount) < len(ids) { // with those that were merged into them
			l.violate(lost, l.String(), keys[0], "deleted %d of %v", answer.Body.DeletedCount, keys)
		}
		return nil
	})
	for _, o := range objects {
		l.remove(how, o)
	}
	if how == unknown {
		l.groups = append(l.groups, group{"delete memories", keys, func(s memoryState) bool { return s == memoryState{} }})
	}
	if how == acknowledged {
		l.checkMemory(ctx, objects[0])
	}
}

func (l *lane) moveMemories(ctx context.Context) {
	objects, keys, ids := l.several(1 + l.rand.IntN(6))
	b := pick(l, certain(l.buckets))
	if len(objects) == 0 || b == nil {
		return
	}
	to := b.is[0]
	// The group is compared by the bucket, so none may be in it already.
	if slices.ContainsFunc(objects, func(o *object[memoryState]) bool { return o.is[0].Bucket == to }) {
		return
	}
	api := l.api()
	how := l.do(ctx, "move memories", append(keys, b.key), func(ctx context.Context) error {
		_, err := api.UpdateMemory(ctx, client.UpdateMemoryRequest{MemoryIds: ids, BucketName: &to})
		return err
	})
	for _, o := range objects {
		next := o.is[0]
		next.Bucket = to
		o.audited("memory.update", how)
		o.change(how, next)
	}
	if how == unknown {
		l.groups = append(l.groups, group{"move memories", keys, func(s memoryState) bool { return s.Bucket == to }})
	}
	if how == acknowledged {
		l.checkMemory(ctx, objects[0])
	}
}
