package mem0

import (
	"context"
	"net/http"
	"net/url"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// source is the source of memories that are stored through this API.
const source = "mem0"

// Config configures an Endpoint. All fields are required, Users only if there are
// applications.
type Config struct {
	Memories *memory.Service
	Users    tenant.ApplicationUserStore
	// ActFor returns the identity with which an application acts for one of its users.
	ActFor func(ctx context.Context, application tenant.Identity, user string, create bool) (tenant.Identity, error)
	// Decode decodes a JSON body. Its errors name the field.
	Decode func(data []byte, into any) error
	// Extractions extract facts from messages; nil stores all messages as they are.
	Extractions Extractions
}

// Endpoint serves the API.
type Endpoint struct{ Config }

// Request is an authenticated request.
type Request struct {
	Who   tenant.Identity // of the credential
	User  string          // for whom an application acts, by header; "" for the user_id of the request
	Param func(name string) string
	Query url.Values
	Body  []byte
	// Degraded reports that the vector index was not searched.
	Degraded func()
}

// Route is a route of the API.
type Route struct {
	Method string
	Path   string        // below the API's own, in the syntax of Fiber
	Access tenant.Access // the required scope
	Body   bool          // whether it has a JSON body
	// Serve returns the response body.
	Serve func(ctx context.Context, r Request) (any, error)
}

// Routes returns the route table. Versions of a route differ in the form of the response.
func (e *Endpoint) Routes() []Route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	const read, write = tenant.AccessRead, tenant.AccessWrite
	return []Route{
		{get, "/v1/ping", read, false, ping},
		{post, "/v3/memories/add", write, true, e.add},
		{post, "/v1/memories", write, true, e.addV1},
		{post, "/v3/memories/search", read, true, e.search},
		{post, "/v2/memories/search", read, true, e.searchV1},
		{post, "/v1/memories/search", read, true, e.searchV1},
		{post, "/v3/memories", read, true, e.list},
		{post, "/v2/memories", read, true, e.listV2},
		{get, "/v1/memories", read, false, e.listV1},
		{del, "/v1/memories", write, false, e.deleteAll},
		{get, "/v1/memories/:memory", read, false, e.get},
		{put, "/v1/memories/:memory", write, true, e.update},
		{del, "/v1/memories/:memory", write, false, e.delete},
		{get, "/v1/memories/:memory/history", read, false, e.history},
		{put, "/v1/batch", write, true, e.updateBatch},
		{del, "/v1/batch", write, true, e.deleteBatch},
		{get, "/v1/event/:event", read, false, e.event},
		{get, "/v1/entities", read, false, e.listEntities},
		{del, "/v1/entities/:type/:name", write, false, e.deleteEntity},
		{del, "/v2/entities/:type/:name", write, false, e.deleteEntity},
	}
}

type pingOut struct {
	Status    string  `json:"status"`
	OrgID     string  `json:"org_id"`
	ProjectID string  `json:"project_id"`
	UserEmail *string `json:"user_email"` // always null
}

// ping reports that the credential is valid. Clients refuse to start without an organization
// and a project: both are the tenant.
func ping(_ context.Context, r Request) (any, error) {
	return pingOut{Status: "ok", OrgID: string(r.Who.Tenant), ProjectID: string(r.Who.Tenant)}, nil
}

type messageOut struct {
	Message string `json:"message"`
}

// ErrUserRequired rejects a request with an application key that names no user.
var ErrUserRequired error = fault.New(fault.Invalid, "user_id is required with an application key: it names the user of the application")

// FieldNames maps fields of domain inputs to their names in requests.
var FieldNames = map[string]string{
	"agent id": "agent_id", "run id": "run_id", "minimum score": "threshold",
	"text, bucket or attribute": "text or metadata",
}
