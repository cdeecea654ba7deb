package apiserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/apiserver/mem0"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errorCode returns the code of an error that has a more specific one than its status, "" for others.
func errorCode(err error) string {
	if _, ok := errors.AsType[tenant.QuotaExceeded](err); ok {
		return "quota_exceeded"
	}
	if _, ok := errors.AsType[tenant.InsufficientScope](err); ok {
		return "insufficient_scope"
	}
	switch {
	case errors.Is(err, errUserRequired), errors.Is(err, mem0.ErrUserRequired):
		return "user_required"
	case errors.Is(err, tenant.ErrKeyReused):
		return "idempotency_key_reused"
	case errors.Is(err, tenant.ErrSuspended):
		return "tenant_suspended"
	}
	return ""
}

// requestFields maps fields of domain inputs to their names in requests.
var requestFields = map[string]string{
	"memory ids": "memoryIds", "target bucket": "bucketId or bucketName", "bucket name": "bucketName",
	"text, bucket or attribute": "text, bucketId, bucketName, agentId, runId, tags or customMetadata", "agent id": "agentId", "run id": "runId", "metadata": "customMetadata",

	"platform name": "platformDisplayName", "conversation id": "conversation.id", "conversation title": "conversation.title", "expiry": "expiresAt",
	"creation time": "conversation.createdAt", "update time": "conversation.updatedAt", "messages": "conversation.messages",
	"messages[].id": "conversation.messages[].id", "messages[].sender": "conversation.messages[].role",
	"messages[].text": "conversation.messages[].content", "messages[].time": "conversation.messages[].createdAt",

	"platform filter": "provider", "import id": "importId", "page size": "pageSize", "context size": "contextChunks", "minimum score": "minScore",
	"queries[].text": "queries[].query", "recall context": "conversationContext", "recall history[]": "conversationHistory[].content",
}

// toHTTPError maps an error to its response and logs server errors.
func (s *Server) toHTTPError(ctx context.Context, err error) *httpx.Error {
	return s.httpError(ctx, err, requestFields)
}

// httpError is toHTTPError for an API with other names of fields.
func (s *Server) httpError(ctx context.Context, err error, names map[string]string) *httpx.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok && errors.Is(err, tenant.ErrUserErased) {
		err = &fault.Error{Kind: fault.Unavailable, Message: f.Message, Err: err}
	}
	out := httpx.ErrorOf(ctx, s.Log, err, names)
	out.Code = cmp.Or(errorCode(err), out.Code)
	return out
}

// abort sends an error response from a huma middleware.
func (s *Server) abort(ctx huma.Context, err error) {
	if err := s.writeError(httpx.FiberContext(ctx), s.toHTTPError(ctx.Context(), err)); err != nil {
		panic(err) // recovered by middleware
	}
}

func (s *Server) writeError(c *fiber.Ctx, e *httpx.Error) error {
	e.SetHeaders(c)
	var body any = e
	if isMem0(c.Path()) {
		body = mem0Error{Detail: e.Message, Code: e.Code, RequestID: e.RequestID}
	}
	return httpx.SendJSON(c, e.GetStatus(), body)
}

// handleError is Fiber's error handler: unknown paths and methods, requests that
// cannot be parsed, and recovered panics.
func (s *Server) handleError(c *fiber.Ctx, err error) error {
	if len(c.Response().Header.Peek(httpx.HeaderRequestID)) == 0 { // not parsed, so middleware did not run
		c.Set(httpx.HeaderRequestID, httpx.NewRequestID(c.Get(httpx.HeaderRequestID)))
	}
	var fe *fiber.Error
	if !errors.As(err, &fe) || fe.Code >= http.StatusInternalServerError {
		return s.writeError(c, s.toHTTPError(c.UserContext(), err))
	}
	out := httpx.ErrorOfStatus(c, fe.Code, s.allowedMethods)
	if fe.Code == http.StatusNotFound && isMem0(c.Path()) {
		out.Message = "not found; this route of the mem0 API is not supported"
	}
	return s.writeError(c, out)
}
