package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// headerSession carries what tells a user's clients apart when they number
// their calls alike. Nothing is kept under it: any replica takes any.
const headerSession = "Mcp-Session-Id"

// ErrCanceled is why a call's work ended that its client does not want any more.
var ErrCanceled = errors.New("the call was cancelled by its client")

// envelope is what a message says of itself.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
	batch bool
}

// envelopeOf reads as much as can be read; whether the message is a good one
// the SDK says.
func envelopeOf(body []byte) envelope {
	var m envelope
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		m.batch = true
		return m
	}
	if json.Unmarshal(body, &m) != nil {
		return envelope{}
	}
	return m
}

// running are the calls in progress on this replica.
type running struct {
	mu    sync.Mutex
	calls map[callKey]context.CancelCauseFunc
}

// callKey names a call: whose, by which of the user's clients, and its number there.
type callKey struct {
	tenant.Scope
	session, id string
}

// begin notes a call until done.
func (r *running) begin(ctx context.Context, key callKey) (work context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[key] != nil { // a client that counts wrong cancels none
		return ctx, func() { cancel(nil) }
	}
	r.calls[key] = cancel
	return ctx, func() {
		r.mu.Lock()
		delete(r.calls, key)
		r.mu.Unlock()
		cancel(nil)
	}
}

// cancel ends a call, if it is in progress here.
func (r *running) cancel(key callKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.calls[key]; cancel != nil {
		cancel(ErrCanceled)
	}
}
