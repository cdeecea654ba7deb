// Package mem0 serves the HTTP API of mem0 (https://docs.mem0.ai/api-reference), so that its
// clients and integrations work without changes. It calls the services that the rest of the
// API calls; docs/connect/mem0.md lists what is supported.
package mem0
