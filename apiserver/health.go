package apiserver

import "context"

// The paths of the probes, which metrics exclude.
const (
	pathHealthz = "/healthz"
	pathReadyz  = "/readyz"
)

type healthOutput struct {
	Body struct {
		Status string `json:"status" enum:"ok"`
	} `nameHint:"Health"`
}

var docHealthz = doc{
	id: "healthz", tag: "Health", summary: "Liveness check",
	description: "200 while the process runs. It does not check dependencies.",
	response:    example(`{"status":"ok"}`),
}

var docReadyz = doc{
	id: "readyz", tag: "Health", summary: "Readiness check",
	description: "The server listens once it has seen the database schema and loaded the embedding model, and then stays ready. " +
		"While a store is unavailable, requests that need it return 503 with `Retry-After`.",
	response: example(`{"status":"ok"}`),
}

// health handles both checks. Readiness does not depend on the stores: removing
// every replica from the load balancer would replace the server's 503 with the
// load balancer's own error. `mnemo serve` listens only after it has seen the
// schema and loaded the model.
func (s *Server) health(context.Context) (*healthOutput, error) {
	out := &healthOutput{}
	out.Body.Status = "ok"
	return out, nil
}
