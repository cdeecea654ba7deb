// Package mcp implements the Model Context Protocol: it exposes the domain
// services as tools and resources for assistants. It does not depend on Fiber or
// on tokens: apiserver authorizes each request and passes one message at a time.
//
// It is stateless (docs/adr/0007-mcp-without-sessions.md): every replica can
// handle every request.
package mcp
