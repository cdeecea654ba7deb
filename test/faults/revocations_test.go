package faults_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// revoked is the documented time within which all servers know of a revocation (docs/reliability.md). The one that
// responded knows it immediately.
const revoked = 30 * time.Second

// awaitRevoked waits until no server does what was revoked at the first one. It returns false if that is not known.
func (l *lane) awaitRevoked(
	ctx context.Context, first int, what string, old func(context.Context, *client.Client) (bool, error),
) bool {
	since := l.now()
	for i := range l.apis {
		server := (first + i) % len(l.apis)
		for {
			begun := l.now()
			call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			was, err := old(call, l.apis[server])
			cancel()
			if err == nil && !was {
				l.checked(revocation)
				break
			}
			if err == nil && (i == 0 || begun-since > revoked) {
				l.violate(reappeared, l.String(), "", "%s at server %d, %s after the revocation at server %d",
					what, server, begun-since, first)
				break
			}
			if ctx.Err() != nil || begun-since > 2*revoked {
				return false
			}
			l.pause(ctx, 50*time.Millisecond)
		}
	}
	return true
}

// revokeToken creates, uses and revokes a token.
func (l *lane) revokeToken(ctx context.Context) {
	var token client.CreatedToken
	name, first := l.newKey(), l.rand.IntN(len(l.apis))
	how := l.do(ctx, "create token", []string{name}, func(ctx context.Context) error {
		answer, err := l.apis[first].CreateToken(ctx, client.CreateTokenRequest{Name: name})
		if err == nil {
			token = answer.Body
		}
		return err
	})
	if how != acknowledged {
		return
	}
	use := func(ctx context.Context, api *client.Client) error {
		_, err := api.ListBuckets(ctx, nil, func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token.Token)
			return nil
		})
		return err
	}
	for _, api := range l.apis { // which remember it
		l.do(ctx, "use token", []string{name}, func(ctx context.Context) error { return use(ctx, api) })
	}
	how = l.do(ctx, "revoke token", []string{name}, func(ctx context.Context) error {
		_, err := l.apis[first].RevokeToken(ctx, token.ID)
		return err
	})
	if how != acknowledged {
		return
	}
	l.awaitRevoked(ctx, first, "a revoked token is accepted", func(ctx context.Context, api *client.Client) (bool, error) {
		err := use(ctx, api)
		if client.StatusOf(err) == http.StatusUnauthorized {
			return false, nil
		}
		return true, err
	})
}

// eraseUser erases the user of an application, and may store a memory in the new account. It reports whether the
// account is known to be empty.
func (l *lane) eraseUser(ctx context.Context) (empty bool) {
	if len(certain(l.memories))+len(certain(l.chats))+len(certain(l.buckets)) == 0 { // it may not exist
		return false
	}
	first := l.rand.IntN(len(l.keys))
	how := l.do(ctx, "erase user", nil, func(ctx context.Context) error {
		_, err := l.keys[first].DeleteUser(ctx, l.user)
		return err
	})
	l.erase(how)
	if l.lost = how == unknown; how != acknowledged {
		return false
	}
	var written *object[memoryState]
	if l.rand.IntN(2) == 0 {
		written, how = l.create(ctx)
	}
	known := l.awaitRevoked(ctx, first, "an erased account is shown", func(ctx context.Context, api *client.Client) (bool, error) {
		answer, err := api.ListMemories(ctx, &client.ListMemoriesParams{All: new(true)})
		if err != nil {
			return false, err
		}
		shown := false
		for _, m := range answer.Body.Memories {
			l.mine(m.Text)
			key, _, _ := strings.Cut(m.Text, " ")
			if o := l.memories[key]; o != nil && o.gone() {
				return true, nil
			}
			shown = shown || written != nil && key == written.key
		}
		return written != nil && how == acknowledged && !shown, nil
	})
	l.lost = !known
	return known && written == nil
}
