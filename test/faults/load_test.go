package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// callTimeout is how long a user waits for a response.
const callTimeout = 8 * time.Second

// account is a user of a tenant with the model of its content.
type account struct {
	*model
	tenant, name string
	// owner is a word in all texts of the account.
	owner    string
	tight    bool             // the tenant's quotas are reached
	apis     []*client.Client // of each server
	http     *http.Client
	user     string           // of an application
	keys     []*client.Client // of the application
	restores int              // of exports so far
	number   int              // of the account
	next     int              // number of the next object
}

func (a *account) isApplicationUser() bool { return a.user != "" }

func (a *account) String() string { return a.tenant + "/" + a.name }

// lane does what users do, one operation at a time. When it does not know whether an
// account was erased, it continues with the next account.
type lane struct {
	*history
	*account
	rand  *rand.Rand
	steps []step
	spare []*account
	lost  bool // an erasure of unknown outcome may still happen
}

func (l *lane) api() *client.Client { return l.apis[l.rand.IntN(len(l.apis))] }

// run works until the context ends.
func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		if l.lost {
			if len(l.spare) == 0 {
				return
			}
			l.account, l.spare, l.lost = l.spare[0], l.spare[1:], false
			if l.isApplicationUser() && l.rand.IntN(2) == 0 { // its first write
				l.restoreExport(ctx)
			}
			continue
		}
		l.step(ctx)
		if l.rand.IntN(4) == 0 {
			l.pause(ctx, time.Duration(l.rand.IntN(20))*time.Millisecond)
		}
	}
}

func (l *lane) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// step is what a user does, with its relative frequency.
type step struct {
	weight int
	do     func(context.Context)
}

// all returns everything that users do.
func (l *lane) all() []step {
	return []step{
		{24, l.createMemory}, {12, l.updateMemory}, {8, l.deleteMemory}, {3, l.deleteMemories}, {4, l.moveMemories},
		{2, l.createBucket}, {1, l.deleteBucket}, {10, l.ingest}, {6, l.extend}, {4, l.exclude}, {5, l.deleteChat},
		{2, l.importChats}, {2, l.race}, {2, l.createTwice}, {1, l.maybeErase}, {16, l.checkAny},
		{5, l.mergeMemories}, {6, l.unmergeMemories}, l.ofAccount(),
	}
}

// ofAccount returns what only the users of an application do, and what only others do.
func (l *lane) ofAccount() step {
	if l.isApplicationUser() {
		return step{8, l.restoreExport}
	}
	return step{2, l.revokeToken}
}

// step does a random operation, and usually a check of what it changed.
func (l *lane) step(ctx context.Context) {
	total := 0
	for _, s := range l.steps {
		total += s.weight
	}
	n := l.rand.IntN(total)
	for _, s := range l.steps {
		if n -= s.weight; n < 0 {
			s.do(ctx)
			return
		}
	}
}

// newKey returns a word for a new object. Its digits are its meaning.
func (l *lane) newKey() string {
	l.next++
	return fmt.Sprintf("item%d%05d", l.number, l.next)
}

// text returns a text about an object. Long ones have several units.
func (l *lane) text(key string) string {
	words := 3 + l.rand.IntN(12)
	if l.rand.IntN(20) == 0 {
		words = 500
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s rev%d", key, l.owner, l.rand.IntN(1_000_000))
	for n := range words {
		b.WriteByte(' ')
		if n%10 == 9 { // each unit names its owner
			b.WriteString(l.owner + " ")
		}
		b.WriteString(vocabulary[l.rand.IntN(len(vocabulary))])
	}
	return b.String()
}

var vocabulary = strings.Fields(`harbour kettle ferry glacier bread ladder violin garden winter market letter river candle
	basket window forest bridge pocket island orange copper travel breakfast lantern mountain piano ticket summer`)

// do performs an operation and records it. It returns what the client knows: of a
// response between 400 and 499, that nothing has happened.
func (l *lane) do(ctx context.Context, kind string, keys []string, call func(context.Context) error) outcome {
	o := op{Begun: l.now(), User: l.String(), Kind: kind, Keys: keys}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	err := call(ctx)
	status := client.StatusOf(err)
	switch {
	case err == nil:
		o.Outcome = acknowledged
	case status >= 400 && status < 500:
		o.Outcome = refused
	default:
		o.Outcome = unknown
	}
	if err != nil {
		o.Detail = fmt.Sprintf("%d %v", status, err)
	}
	l.add(o)
	l.judge(o, status, err)
	return o.Outcome
}

// judge reports responses that no fault explains.
func (l *lane) judge(o op, status int, err error) {
	full := status == http.StatusForbidden && l.tight
	switch {
	case status == http.StatusNotFound && o.Kind != "update memory (race)":
		l.violate(lost, o.User, strings.Join(o.Keys, ","), "%s: %s", o.Kind, o.Detail) // users use only what exists
	case status == http.StatusInternalServerError:
		e, _ := errors.AsType[*client.StatusError](err)
		l.violate(unexpected, o.User, strings.Join(o.Keys, ","), "%s: status 500, request %s", o.Kind, e.RequestID)
	case o.Outcome == refused && status != http.StatusNotFound && status != http.StatusTooManyRequests && !full:
		l.violate(unexpected, o.User, strings.Join(o.Keys, ","), "%s: %s", o.Kind, o.Detail)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		if e, _ := errors.AsType[*client.StatusError](err); e.RetryAfter == 0 {
			l.violate(unexpected, o.User, "", "%s: status %d without Retry-After", o.Kind, status)
		}
	}
}

// retry repeats an operation with an idempotency key while its outcome is unknown,
// at most three times. late reports whether an earlier request may still arrive.
func (l *lane) retry(ctx context.Context, kind, key string, call func(context.Context, *client.Client) error) (how outcome, late bool) {
	for attempt := range 3 {
		api := l.api()
		how = l.do(ctx, kind, []string{key}, func(ctx context.Context) error { return call(ctx, api) })
		if how != unknown {
			// A refusal does not apply to an earlier request.
			if how == refused && late {
				how = unknown
			}
			return how, late
		}
		late = true
		if l.rand.IntN(2) == 0 || attempt == 2 {
			return how, late
		}
		l.pause(ctx, time.Duration(l.rand.IntN(1000))*time.Millisecond)
	}
	return how, late
}

// maybeErase erases the account, rarely. It uses it again only if the outcome is known.
func (l *lane) maybeErase(ctx context.Context) {
	if often := l.tight && l.rand.IntN(4) == 0; l.rand.IntN(20) > 0 && !often { // full of objects of unknown state
		return
	}
	if l.isApplicationUser() {
		l.eraseUser(ctx)
		return
	}
	api := l.api()
	how := l.do(ctx, "erase account", nil, func(ctx context.Context) error {
		answer, err := api.DeleteAccount(ctx, client.DeleteAccountRequest{Confirm: client.DeleteEverything})
		if err == nil && answer.Body.Message != "Account deleted" {
			return errors.New("the deletion continues in the background")
		}
		return err
	})
	l.erase(how)
	if how == acknowledged {
		for _, o := range l.memories {
			if o.gone() && o.id != "" {
				l.checkMemory(ctx, o)
				break
			}
		}
	}
	l.lost = how == unknown
}

// race updates and deletes a memory at the same time, at different servers.
func (l *lane) race(ctx context.Context) {
	o := l.anyMemory()
	if o == nil {
		return
	}
	first, second := l.api(), l.api()
	text := l.text(o.key)
	var wait sync.WaitGroup
	var updated outcome
	wait.Go(func() {
		updated = l.do(ctx, "update memory (race)", []string{o.key}, func(ctx context.Context) error {
			_, err := first.UpdateMemory(ctx, client.UpdateMemoryRequest{MemoryID: &o.id, Text: &text})
			return err
		})
	})
	how := l.do(ctx, "delete memory (race)", []string{o.key}, func(ctx context.Context) error {
		_, err := second.DeleteMemory(ctx, o.id)
		return err
	})
	wait.Wait()
	before := o.is[0]
	o.audited("memory.update", updated)
	l.remove(how, o)
	switch how {
	case acknowledged: // an update cannot create it
		l.checkMemory(ctx, o)
	case refused: // reported
	case unknown:
		o.maybe(memoryState{Text: text, Version: before.Version + 1, Bucket: before.Bucket})
	}
}

// claudeExport returns an export file of Claude with conversations of two messages.
func claudeExport(keys, texts []string, ids []string) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"uuid":%q,"name":%q,"created_at":"2026-02-01T10:00:00Z","updated_at":"2026-02-01T10:05:00Z","chat_messages":[`+
			`{"uuid":"%s-1","sender":"human","text":%q,"created_at":"2026-02-01T10:00:00Z"},`+
			`{"uuid":"%s-2","sender":"assistant","text":%q,"created_at":"2026-02-01T10:00:10Z"}]}`,
			ids[i], key, ids[i], texts[2*i], ids[i], texts[2*i+1])
	}
	b.WriteByte(']')
	return b.Bytes()
}
