package apiserver

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxUserPage is the maximum number of users of a page.
const maxUserPage = 1000

const tagUsers = "Users"

type applicationUserBody struct {
	User          string `json:"user"`
	Memories      int64  `json:"memories"`
	Conversations int64  `json:"conversations" doc:"Active conversations; those over the quota do not count."`
	CreatedAt     string `json:"createdAt" format:"date-time"`
}

func applicationUserOf(u tenant.ApplicationUser) applicationUserBody {
	return applicationUserBody{User: u.Name, Memories: u.Memories, Conversations: u.Conversations, CreatedAt: chat.Stamp(u.CreatedAt)}
}

type listUsersInput struct {
	After string `query:"after"`
	Count string `query:"count"`
}

type listUsersOutput struct{ Body applicationUsersBody }

type applicationUsersBody struct {
	Users []applicationUserBody `json:"users"`
	Next  string                `json:"next,omitempty" doc:"The value of after for the next page; absent on the last page."`
}

var docListUsers = doc{
	id: "listUsers", tag: tagUsers, summary: "List the users of the tenant's applications", access: tenant.AccessAdmin,
	description: "Sorted by name. Users listed in the Tenant and users of an identity provider are not included.",
	params: []*huma.Param{
		textParam("after", "Only users after this name.", "customer-41"),
		upTo(intParam("count", "The number of users. Values above 1000 are treated as 1000.", 100, 1, 100), maxUserPage),
	},
	response: example(`{"users":[{"user":"customer-42","memories":2,"conversations":1,"createdAt":"2026-05-03T09:00:00.000Z"}],"next":"customer-42"}`),
	errors:   []int{http.StatusBadRequest},
}

func (s *Server) listUsers(ctx context.Context, who tenant.Identity, in *listUsersInput) (*listUsersOutput, error) {
	var p params
	count := min(p.Integer("count", in.Count, 100, 1), maxUserPage)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if in.After != "" {
		if err := tenant.CheckUserPosition("after", in.After); err != nil {
			return nil, err
		}
	}
	list, err := s.Users.ApplicationUsers(ctx, who, in.After, count+1)
	if err != nil {
		return nil, err
	}
	out := &listUsersOutput{Body: applicationUsersBody{Users: []applicationUserBody{}}}
	for _, u := range list[:min(count, len(list))] {
		out.Body.Users = append(out.Body.Users, applicationUserOf(u))
	}
	if len(list) > count {
		out.Body.Next = list[count-1].Name
	}
	return out, nil
}

type userInput struct {
	User string `path:"user" doc:"The user's name, percent-encoded." example:"customer-42"`
}

type getUserOutput struct{ Body applicationUserBody }

var docGetUser = doc{
	id: "getUser", tag: tagUsers, summary: "Get the usage of a user of the tenant's applications", access: tenant.AccessAdmin,
	response: example(`{"user":"customer-42","memories":2,"conversations":1,"createdAt":"2026-05-03T09:00:00.000Z"}`),
	errors:   []int{http.StatusBadRequest, http.StatusNotFound},
}

func (s *Server) getUser(ctx context.Context, who tenant.Identity, in *userInput) (*getUserOutput, error) {
	name, err := userOf(in.User)
	if err != nil {
		return nil, err
	}
	u, err := s.Users.ApplicationUser(ctx, who, name)
	if err != nil {
		return nil, err
	}
	return &getUserOutput{Body: applicationUserOf(u)}, nil
}

type deleteUserOutput struct {
	Status int
	Body   deletedUserBody
}

type deletedUserBody struct {
	Message string `json:"message"`
}

var docDeleteUser = doc{
	id: "deleteUser", tag: tagUsers, summary: "Erase a user of the tenant's applications", access: tenant.AccessAdmin,
	description: "Ends access to the user's data: for all writes and for reads of the replica that responds immediately, for reads of other replicas usually within a second, at most 30 seconds later. A job then deletes memories with their versions, buckets, conversations, messages, imports and vectors, " +
		"and the user, in batches. The name is available immediately: the next write for it creates a new, empty user.",
	response: example(`{"message":"The user's data is being deleted in the background"}`),
	status:   http.StatusAccepted,
	errors:   []int{http.StatusBadRequest, http.StatusNotFound},
}

func (s *Server) deleteUser(ctx context.Context, who tenant.Identity, in *userInput) (*deleteUserOutput, error) {
	name, err := userOf(in.User)
	if err != nil {
		return nil, err
	}
	if err := s.Users.EraseApplicationUser(ctx, who, name); err != nil {
		return nil, err
	}
	return &deleteUserOutput{Status: http.StatusAccepted, Body: deletedUserBody{Message: "The user's data is being deleted in the background"}}, nil
}
