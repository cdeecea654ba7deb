package apiserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	tagAccount = "Account"

	mediaZip   = "application/zip"
	exportName = `attachment; filename="mnemo-export-%s.zip"`
)

var docExport = doc{
	id: "export", tag: tagAccount, summary: "Export all data of the user",
	description: "Returns a zip of JSON Lines with a consistent snapshot of buckets, memories with their versions, and conversations with their messages. " +
		"`POST /api/chat-history/import` restores it into an empty account. A user can run one export at a time, and a tenant two per server. " +
		"A download may take up to an hour, and ends early if the client reads less than 64 KiB/s. A response without its last chunk is incomplete.",
	file: mediaZip,
}

// export streams the archive. It fails before the response starts where possible.
func (s *Server) export(ctx context.Context, who tenant.Identity, _ *struct{}) (*huma.StreamResponse, error) {
	send, err := s.openExport(ctx, who)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) { send(httpx.FiberContext(hc)) }}, nil
}

// openExport opens a snapshot of the user's data and returns the function that
// sends it.
func (s *Server) openExport(ctx context.Context, who tenant.Identity) (send func(c *fiber.Ctx), err error) {
	release, err := s.exports.acquire(who.Scope)
	if err != nil {
		return nil, err
	}
	// The response outlives the context of the handler.
	ctx, cancel := context.WithTimeout(tenant.WithActor(httpx.WithRequestID(s.closing, httpx.RequestIDOf(ctx)), who.Actor), s.ExportTimeout)
	done := func() { cancel(); release() }
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
		c.Set(fiber.HeaderContentType, mediaZip)
		c.Set(fiber.HeaderContentDisposition, fmt.Sprintf(exportName, snapshot.At.Format(time.DateOnly)))
		s.stream(ctx, c, func(w io.Writer) error {
			return archive.Write(w, snapshot.At, snapshot.Counts, snapshot)
		}, func() { snapshot.Close(); done() })
	}, nil
}

// openAuditExport returns the function that sends the audit log of the user's tenant. It
// shares the limits of exports.
func (s *Server) openAuditExport(ctx context.Context, who tenant.Identity) (send func(c *fiber.Ctx), err error) {
	release, err := s.exports.acquire(who.Scope)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(httpx.WithRequestID(s.closing, httpx.RequestIDOf(ctx)), s.ExportTimeout)
	return func(c *fiber.Ctx) {
		c.Set(fiber.HeaderContentType, mediaLines)
		c.Set(fiber.HeaderContentDisposition, `attachment; filename="mnemo-audit.jsonl"`)
		s.stream(ctx, c, func(w io.Writer) error { return audit.Export(ctx, s.Audit, who.Tenant, w) }, func() { cancel(); release() })
	}, nil
}

// stream sends what write writes while the client reads fast enough, and calls done before
// the response ends, so that the client can start the next export. An error ends the
// response without its last chunk.
func (s *Server) stream(ctx context.Context, c *fiber.Ctx, write func(io.Writer) error, done func()) {
	r, w := io.Pipe()
	go func() {
		err := s.writeExport(ctx, w, write)
		done()
		_ = w.CloseWithError(err)
	}()
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Status(http.StatusOK)
	c.Context().SetBodyStream(httpx.NewPacedBody(ctx, r, c.Context().Conn(), s.WriteTimeout), -1)
}

// writeExport writes an export until it is complete, the reader is closed or the context
// ends.
func (s *Server) writeExport(ctx context.Context, w *io.PipeWriter, write func(io.Writer) error) error {
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	defer stop()
	buffer := bufio.NewWriterSize(w, 64<<10)
	err := write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "export incomplete", slog.String("request_id", httpx.RequestIDOf(ctx)), slog.Any("error", err))
	}
	return err
}

type deleteAccountInput struct {
	Body struct {
		Confirm *string `json:"confirm" enum:"delete everything" doc:"Confirmation phrase."`
	} `nameHint:"DeleteAccountRequest"`
}

type deleteAccountOutput struct {
	Status int
	Body   deletedAccountBody
}

type deletedAccountBody struct {
	Message       string `json:"message"`
	Memories      int    `json:"memories" doc:"The number deleted."`
	Conversations int    `json:"conversations" doc:"The number deleted."`
}

var docDeleteAccount = doc{
	id: "deleteAccount", tag: tagAccount, summary: "Delete all data of the user",
	description: "Permanently deletes memories with their versions, buckets, conversations, messages, imports and vectors. " +
		"The user and the issued token remain valid; OAuth clients are disconnected, and tokens that the user created are revoked. Freed quota is given to blocked conversations of the tenant's other users. " +
		"If the deletion takes longer than a request, the response is 202 and it continues in the background. " +
		"Changes that are made meanwhile to objects that existed before the request, such as a message added to a conversation, are deleted with them.",
	request:   example(`{"confirm":"` + account.Confirmation + `"}`),
	response:  example(`{"message":"Account deleted","memories":2,"conversations":1}`),
	successes: map[int]string{http.StatusAccepted: "The deletion continues in the background."},
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
		out.Status, out.Body.Message = http.StatusAccepted, "The account is being deleted in the background"
	}
	return out, nil
}
