// Package apiserver answers HTTP: it knows Fiber and the shapes of the
// contract (shared/API.md), and nothing of how memories and conversations are
// kept. A request passes, in this order, the edge (request id, deadline,
// metrics, recovery), authentication, and its handler.
package apiserver
