package faults_test

import (
	"context"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/api/client"
)

func (l *lane) createBucket(ctx context.Context) {
	if len(certain(l.buckets)) > 4 {
		return
	}
	key := l.newKey()
	o := &object[string]{key: key, is: []string{""}}
	l.buckets[key] = o
	how, late := l.retry(ctx, "create bucket", key, func(ctx context.Context, api *client.Client) error {
		answer, err := api.CreateBucket(ctx, &client.CreateBucketParams{IdempotencyKey: &key}, client.CreateBucketRequest{Name: key})
		if err == nil {
			location := answer.Header.Get("Location")
			o.id = location[strings.LastIndexByte(location, '/')+1:]
		}
		return err
	})
	o.late = late
	o.change(how, key)
}

// deleteBucket deletes a bucket; its memories move to the default bucket, in batches.
func (l *lane) deleteBucket(ctx context.Context) {
	o := pick(l, certain(l.buckets))
	if o == nil {
		return
	}
	name, api := o.is[0], l.api()
	how := l.do(ctx, "delete bucket", []string{o.key}, func(ctx context.Context) error {
		_, err := api.DeleteBucket(ctx, o.id)
		return err
	})
	o.change(how, "")
	for _, m := range l.memories {
		for _, s := range slices.Clone(m.is) {
			if s.Bucket != name {
				continue
			}
			s.Bucket = ""
			switch {
			case how == refused:
			case how == acknowledged && len(m.is) == 1:
				if s.Merged == "" {
					m.audited("memory.update", acknowledged)
				}
				m.set(s)
			default:
				m.audited("memory.update", unknown)
				m.maybe(s)
			}
		}
	}
	// A group whose operation moved memories to this bucket cannot be judged any more.
	if how != refused {
		l.groups = slices.DeleteFunc(l.groups, func(g group) bool { return g.what == "move memories" })
	}
}
