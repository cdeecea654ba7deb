package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// headerSession distinguishes the clients of a user, whose call ids may collide.
// It is stateless: every replica accepts every session.
const headerSession = "Mcp-Session-Id"

// ErrCanceled is the cause of a context that the client canceled.
var ErrCanceled = errors.New("the client canceled the call")

// envelope is the part of a message that identifies it.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
	batch bool
}

// envelopeOf decodes the envelope of a message. The error is that of a repeated member, of which the SDK would use the
// last. The SDK validates everything else.
func envelopeOf(body []byte) (envelope, error) {
	var m envelope
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		m.batch = true
		return m, nil
	}
	if err := exactjson.Unmarshal(body, &m); err == nil || fault.Is(err, fault.Invalid) {
		return m, err
	}
	return envelope{}, nil
}

// running are the calls in progress on this replica.
type running struct {
	mu    sync.Mutex
	calls map[callKey]context.CancelCauseFunc
}

// callKey identifies a call by user, session and call id.
type callKey struct {
	tenant.Scope
	session, id string
}

// begin registers a call until done is called.
func (r *running) begin(ctx context.Context, key callKey) (work context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[key] != nil { // reused id: cannot be canceled
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

// cancel cancels a call that is in progress on this replica.
func (r *running) cancel(key callKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.calls[key]; cancel != nil {
		cancel(ErrCanceled)
	}
}
