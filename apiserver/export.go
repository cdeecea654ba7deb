package apiserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	tagAccount = "Account"
	// maxExports is how many exports a replica gives at a time: each holds a
	// connection to the database and its snapshot.
	maxExports = 2
	// exportRetry is how long to wait for one of them to end.
	exportRetry = 30 * time.Second

	mediaZip   = "application/zip"
	exportName = `attachment; filename="mnemo-export-%s.zip"`
)

var docExport = doc{
	id: "export", tag: tagAccount, summary: "Take everything out",
	description: "A zip of JSON Lines with all that the user has, as it is at this moment: buckets, memories with their versions, conversations with their messages. " +
		"`POST /api/chat-history/import` takes it back into an empty account. It is given at the speed it is taken, for up to an hour; one export of a user at a time. " +
		"An answer that ends before its last chunk is incomplete.",
	file: mediaZip,
}

// export answers with the archive as it is written. What can be known to fail
// fails before the answer begins.
func (s *Server) export(ctx context.Context, who tenant.Identity, _ *struct{}) (*huma.StreamResponse, error) {
	send, err := s.openExport(ctx, who)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) { send(fiberCtx(hc)) }}, nil
}

// openExport opens what the user has and returns what answers with it.
func (s *Server) openExport(ctx context.Context, who tenant.Identity) (send func(c *fiber.Ctx), err error) {
	end, err := s.exports.begin(who.Scope)
	if err != nil {
		return nil, err
	}
	// The answer goes on when the handler's context is over.
	ctx, cancel := context.WithTimeout(context.WithValue(s.closing, requestIDKey{}, requestIDOf(ctx)), s.ExportTimeout)
	done := func() { cancel(); end() }
	opening := time.AfterFunc(s.RequestTimeout, cancel)
	snapshot, err := s.Accounts.Export(ctx, who)
	if !opening.Stop() && err == nil {
		snapshot.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		done()
		return nil, err
	}
	return func(c *fiber.Ctx) {
		r, w := io.Pipe()
		go func() {
			err := s.writeArchive(ctx, w, snapshot)
			// Before the client sees the end: it may ask for the next one.
			snapshot.Close()
			done()
			_ = w.CloseWithError(err) // an error ends the answer without its last chunk
		}()
		c.Set(fiber.HeaderContentType, mediaZip)
		c.Set(fiber.HeaderContentDisposition, fmt.Sprintf(exportName, snapshot.At.Format(time.DateOnly)))
		c.Set(fiber.HeaderCacheControl, "no-store")
		c.Status(http.StatusOK)
		c.Context().SetBodyStream(&patient{PipeReader: r, conn: c.Context().Conn(), patience: s.WriteTimeout, ctx: ctx}, -1)
	}, nil
}

// writeArchive writes a snapshot until it is whole, its reader is gone or the
// context is over.
func (s *Server) writeArchive(ctx context.Context, w *io.PipeWriter, snapshot *account.Snapshot) error {
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	defer stop()
	buffer := bufio.NewWriterSize(w, 64<<10)
	err := archive.Write(buffer, snapshot.At, snapshot.Counts, snapshot)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "export ended early", slog.String("request_id", requestIDOf(ctx)), slog.Any("error", err))
	}
	return err
}

// patient is an answer's body that is given at the speed it is taken, as long
// as the client takes something within its patience.
type patient struct {
	*io.PipeReader
	conn     net.Conn
	patience time.Duration
	ctx      context.Context //nolint:containedctx // of the answer, which it is
}

// Read reads the next piece. What is written of it has the time until the next
// Read, but none that is left when the answer as a whole is out of time.
func (p *patient) Read(b []byte) (int, error) {
	n, err := p.PipeReader.Read(b)
	until := time.Now().Add(p.patience)
	if end, ok := p.ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	_ = p.conn.SetWriteDeadline(until) // if it cannot be set, writing fails
	return n, err                      //nolint:wrapcheck // io.Reader's contract
}

// exports counts what a replica is giving out, so that slow clients do not take
// all connections to the database.
type exports struct {
	mu      sync.Mutex
	running map[tenant.Scope]bool
}

// begin lets one more begin, and returns what ends it; RateLimited when the
// user has one already, Unavailable when the replica has as many as it may.
func (x *exports) begin(scope tenant.Scope) (end func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.running[scope]:
		return nil, &fault.Error{Kind: fault.RateLimited, RetryAfter: exportRetry,
			Message: "an export of this account is being taken already; wait for it to end"}
	case len(x.running) >= maxExports:
		return nil, &fault.Error{Kind: fault.Unavailable, RetryAfter: exportRetry,
			Message: "too many exports are being taken; try again"}
	}
	if x.running == nil {
		x.running = make(map[tenant.Scope]bool)
	}
	x.running[scope] = true
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.running, scope)
	}, nil
}

type deleteAccountInput struct {
	Body struct {
		Confirm *string `json:"confirm" enum:"delete everything" doc:"Says that this is meant."`
	} `nameHint:"DeleteAccountRequest"`
}

type deleteAccountOutput struct {
	Status int
	Body   deletedAccountBody
}

type deletedAccountBody struct {
	Message       string `json:"message"`
	Memories      int    `json:"memories" doc:"How many were deleted."`
	Conversations int    `json:"conversations" doc:"How many were deleted."`
}

var docDeleteAccount = doc{
	id: "deleteAccount", tag: tagAccount, summary: "Delete everything the user has",
	description: "Memories with their versions, buckets, conversations, messages, imports and vectors; it cannot be undone. " +
		"The user and its token stay: the account is empty, and programs that were let in to /mcp are disconnected. Room that is freed goes to blocked conversations of the tenant's other users. " +
		"What takes longer than a request may is answered with 202 and goes on by itself.",
	request:  example(`{"confirm":"` + account.Confirmation + `"}`),
	response: example(`{"message":"Account deleted","memories":2,"conversations":1}`),
	also:     map[int]string{http.StatusAccepted: "It goes on: the account is empty a little later."},
}

func (s *Server) deleteAccount(ctx context.Context, who tenant.Identity, in *deleteAccountInput) (*deleteAccountOutput, error) {
	done, err := s.Accounts.Delete(ctx, who, in.Body.Confirm)
	if err != nil {
		return nil, err
	}
	out := &deleteAccountOutput{Status: http.StatusOK, Body: deletedAccountBody{
		Message: "Account deleted", Memories: done.Memories, Conversations: done.Conversations,
	}}
	if !done.Done {
		out.Status, out.Body.Message = http.StatusAccepted, "The account is being deleted; it goes on by itself"
	}
	return out, nil
}
