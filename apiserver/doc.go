// Package apiserver implements the HTTP API (api/openapi.json) with Fiber and
// huma. A request passes middleware (request ID, deadline, recovery, metrics),
// authentication, the rate limit, and its handler, which calls a domain service.
package apiserver
