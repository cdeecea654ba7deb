package mem0

import (
	"context"
	"net/url"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxUsers is how many users of applications are listed, in the order of their names.
const maxUsers = 10_000

const typeUser = "user"

type entityOut struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Type          string `json:"type"` // user, agent, app or run
	TotalMemories int64  `json:"total_memories"`
	CreatedAt     string `json:"created_at"`
	UpdatedAt     string `json:"updated_at"`
}

// listEntities lists what the user's memories belong to. An application key lists the users of
// applications, which requires the scope admin, unless its header names one of them.
func (e *Endpoint) listEntities(ctx context.Context, r Request) (any, error) {
	var problems fault.Fields
	p := pagingOf(&problems, "/mem0/v1/entities/", r.Query)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if r.Who.Application != nil && r.User == "" {
		return e.users(ctx, r, p)
	}
	who, err := e.actor(ctx, r, "", false)
	if err != nil {
		return nil, err
	}
	groups, count, err := e.Memories.Groups(ctx, who, p.skip(), p.size)
	if err != nil {
		return nil, err
	}
	items := make([]entityOut, len(groups))
	for i, g := range groups {
		items[i] = entityOut{g.Name, g.Name, g.Kind, g.Memories, chat.Stamp(g.CreatedAt), chat.Stamp(g.UpdatedAt)}
	}
	return pageOf(p, items, count), nil
}

func (e *Endpoint) users(ctx context.Context, r Request, p paging) (any, error) {
	if err := r.Who.Access.Require(tenant.AccessAdmin); err != nil {
		return nil, err
	}
	all, err := e.Users.ApplicationUsers(ctx, r.Who, "", maxUsers)
	if err != nil {
		return nil, err
	}
	// As with a user's token, an entity without memories does not exist.
	all = slices.DeleteFunc(all, func(u tenant.ApplicationUser) bool { return u.Memories == 0 })
	items := []entityOut{}
	for _, u := range all[min(p.skip(), len(all)):min(p.skip()+p.size, len(all))] {
		at := chat.Stamp(u.CreatedAt)
		items = append(items, entityOut{u.Name, u.Name, typeUser, u.Memories, at, at})
	}
	return pageOf(p, items, len(all)), nil
}

// deleteEntity deletes the memories that belong to an entity. With an application key, a
// user is one of the application's. It succeeds without memories: clients delete all listed entities, and
// the memories of one may belong to another that was deleted before.
func (e *Endpoint) deleteEntity(ctx context.Context, r Request) (any, error) {
	kind := r.Param("type")
	if !slices.Contains([]string{typeUser, "agent", "app", "run"}, kind) {
		return nil, fault.New(fault.Invalid, "the type of the entity must be user, agent, app or run")
	}
	name, err := url.PathUnescape(r.Param("name"))
	if err != nil || name == wildcard {
		return nil, fault.New(fault.Invalid, "the name of the entity must be percent-encoded and not be *")
	}
	err = e.deleteSelected(ctx, r, map[string]any{kind + "_id": name})
	return messageOut{"Entity deleted successfully!"}, err
}

// deleteAll deletes the memories that belong to all given entities.
func (e *Endpoint) deleteAll(ctx context.Context, r Request) (any, error) {
	conditions := entitiesOf(r.Query).conditions()
	if len(conditions) == 0 {
		return nil, fault.New(fault.Invalid, "one of user_id, agent_id, app_id and run_id is required; * matches every value")
	}
	err := e.deleteSelected(ctx, r, conditions)
	return messageOut{"Memories deleted successfully!"}, err
}

func (e *Endpoint) deleteSelected(ctx context.Context, r Request, conditions map[string]any) error {
	selected, err := selectBy(r, object{members: conditions})
	if err != nil {
		return err
	}
	who, err := e.actor(ctx, r, selected.user, false)
	if err != nil {
		return err
	}
	_, err = e.Memories.DeleteMatching(ctx, who, selected.where)
	return err
}
