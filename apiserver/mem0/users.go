package mem0

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// actor returns the identity that a request acts with. With an application key, user names
// the user of the application. Otherwise user is an attribute of the memories, and the
// identity is that of the token.
func (e *Endpoint) actor(ctx context.Context, r Request, user string, create bool) (tenant.Identity, error) {
	switch {
	case r.Who.Application == nil:
		return r.Who, nil
	case r.User != "" && user != "" && r.User != user:
		return tenant.Identity{}, fault.New(fault.Invalid, "user_id must be the user of header X-Mnemo-User, if both are sent")
	case r.User != "":
		user = r.User
	case user == "":
		return tenant.Identity{}, ErrUserRequired
	}
	return e.ActFor(ctx, r.Who, user, create)
}

// owned are memories of one user.
type owned struct {
	who      tenant.Identity
	memories []memory.Memory
}

// find returns those of the memories that exist, by their users. A token has one user; an
// application key finds the memories of all users of applications, because the requests of
// the API do not name the user of a memory.
func (e *Endpoint) find(ctx context.Context, r Request, ids []string) ([]owned, error) {
	byUser := map[string][]string{r.User: ids}
	if r.Who.Application != nil && r.User == "" {
		owners, err := e.Users.MemoryOwners(ctx, r.Who, ids)
		if err != nil {
			return nil, err
		}
		byUser = map[string][]string{}
		for _, id := range ids {
			if user, ok := owners[id]; ok {
				byUser[user] = append(byUser[user], id)
			}
		}
	}
	var out []owned
	for user, ids := range byUser {
		who, err := e.actor(ctx, r, user, false)
		if err != nil {
			return nil, err
		}
		found, err := e.Memories.Find(ctx, who, ids)
		if err != nil {
			return nil, err
		}
		out = append(out, owned{who, found})
	}
	return out, nil
}

// one returns a memory with its user.
func (e *Endpoint) one(ctx context.Context, r Request, id string) (tenant.Identity, memory.Memory, error) {
	found, err := e.find(ctx, r, []string{id})
	if err != nil {
		return tenant.Identity{}, memory.Memory{}, err
	}
	for _, o := range found {
		for _, m := range o.memories {
			return o.who, m, nil
		}
	}
	return tenant.Identity{}, memory.Memory{}, memory.ErrMemoryNotFound
}
