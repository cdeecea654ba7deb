// Package mcp speaks the Model Context Protocol: the services of the HTTP API
// as tools and resources an assistant can choose by itself. It knows nothing of
// Fiber or of tokens: apiserver says whose request it is and gives it one
// message at a time.
//
// It keeps no sessions (docs/adr/0007-mcp-without-sessions.md), so that any replica can answer any request.
package mcp
