package apiserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/mem0"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// statuses maps each error kind to its HTTP status.
var statuses = map[fault.Kind]int{
	fault.Internal:     http.StatusInternalServerError,
	fault.Invalid:      http.StatusBadRequest,
	fault.Unauthorized: http.StatusUnauthorized,
	fault.Forbidden:    http.StatusForbidden,
	fault.NotFound:     http.StatusNotFound,
	fault.Conflict:     http.StatusConflict,
	fault.TooLarge:     http.StatusRequestEntityTooLarge,
	fault.Unsupported:  http.StatusUnsupportedMediaType,
	fault.RateLimited:  http.StatusTooManyRequests,
	fault.Unavailable:  http.StatusServiceUnavailable,
}

// statusCodes are the codes of errors that have no more specific one, by status.
var statusCodes = map[int]string{
	http.StatusBadRequest:                  "invalid",
	http.StatusUnauthorized:                "unauthorized",
	http.StatusForbidden:                   "forbidden",
	http.StatusNotFound:                    "not_found",
	http.StatusMethodNotAllowed:            "method_not_allowed",
	http.StatusRequestTimeout:              "timeout",
	http.StatusConflict:                    "conflict",
	http.StatusRequestEntityTooLarge:       "too_large",
	http.StatusUnsupportedMediaType:        "unsupported_media_type",
	http.StatusTooManyRequests:             "rate_limited",
	http.StatusRequestHeaderFieldsTooLarge: "headers_too_large",
	http.StatusInternalServerError:         "internal",
	http.StatusServiceUnavailable:          "unavailable",
}

// errorCode returns the code of an error with a status.
func errorCode(err error, status int) string {
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
	return cmp.Or(statusCodes[status], "invalid")
}

// newError returns an error response without a more specific code.
func newError(status int, message string) *Error {
	return &Error{status: status, Message: message, Code: errorCode(nil, status)}
}

// incompleteBody is the message for a body that ends early.
const incompleteBody = "incomplete request body"

// defaultRetry is the Retry-After of errors that specify none.
const defaultRetry = 5 * time.Second

// requestTooLong is the message for a request that was not finished within its deadline.
const requestTooLong = "request timed out; try again"

// requestTimeout is the message for a request whose headers or body stalled.
const requestTimeout = "request timed out; send it again"

// Error is the body of every error response.
type Error struct {
	status  int
	headers http.Header

	Message     string   `json:"error" doc:"What went wrong and how to fix it." example:"text is required and must not be blank"`
	Code        string   `json:"code" doc:"A stable error code. New codes may be added." example:"invalid"`
	RejectedIDs []string `json:"rejectedIds,omitempty" doc:"The ids rejected by a bulk operation."`
	RequestID   string   `json:"requestId,omitempty" doc:"Identifies the request in the server log; status 500 only."`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// GetStatus returns the HTTP status, for huma.
func (e *Error) GetStatus() int { return e.status }

// GetHeaders returns the response headers, for huma.
func (e *Error) GetHeaders() http.Header { return e.headers }

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

// toHTTPError maps an error to its response and logs server errors. It is the
// only place where error kinds become statuses.
func (s *Server) toHTTPError(ctx context.Context, err error) *Error {
	return s.httpError(ctx, err, requestFields)
}

// httpError is toHTTPError for an API with other names of fields.
func (s *Server) httpError(ctx context.Context, err error, names map[string]string) *Error {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = &fault.Error{Kind: fault.Internal, Err: err}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			f = &fault.Error{Kind: fault.Unavailable, Message: requestTooLong, Err: err}
		}
	}
	if errors.Is(err, tenant.ErrUserErased) {
		f = &fault.Error{Kind: fault.Unavailable, Message: f.Message, Err: err}
	}
	if f.Kind == fault.Unavailable && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// Whatever the request waited for last may be available.
		f = &fault.Error{Kind: fault.Unavailable, Message: requestTooLong, RetryAfter: f.RetryAfter, Err: err}
	}
	f = f.WithFieldNames(names)
	status := statuses[f.Kind]
	out := &Error{status: status, headers: http.Header{}, Message: f.Message, Code: errorCode(err, status), RejectedIDs: f.RejectedIDs}
	switch f.Kind {
	case fault.Internal:
		out.Message, out.RequestID = internalError, requestIDOf(ctx)
		s.Log.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request_id", out.RequestID), slog.Any("error", err))
	case fault.Unavailable:
		s.Log.LogAttrs(ctx, slog.LevelWarn, "dependency unavailable", slog.String("request_id", requestIDOf(ctx)), slog.Any("error", err))
		out.headers.Set(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter))
	case fault.RateLimited:
		out.headers.Set(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter))
	case fault.Unauthorized:
		out.headers.Set("WWW-Authenticate", "Bearer")
	}
	return out
}

// retryAfter returns the value of Retry-After for a delay, or for the default.
func retryAfter(d time.Duration) string {
	if d <= 0 {
		d = defaultRetry
	}
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}

// abort sends an error response from a huma middleware.
func (s *Server) abort(ctx huma.Context, err error) {
	if err := s.writeError(fiberCtx(ctx), s.toHTTPError(ctx.Context(), err)); err != nil {
		panic(err) // recovered by middleware
	}
}

func (s *Server) writeError(c *fiber.Ctx, e *Error) error {
	for name, values := range e.headers {
		c.Set(name, strings.Join(values, ", "))
	}
	var body any = e
	if isMem0(c.Path()) {
		body = mem0Error{Detail: e.Message, Code: e.Code, RequestID: e.RequestID}
	}
	return sendJSON(c, e.status, body)
}

// sendJSON sends a body that is not one of huma's.
func sendJSON(c *fiber.Ctx, status int, body any) error {
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	encode.SetEscapeHTML(false) // keep <API_TOKEN> readable
	if err := encode.Encode(body); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(status).Send(b.Bytes())
}

// handleError is Fiber's error handler: unknown paths and methods, requests that
// cannot be parsed, and recovered panics.
func (s *Server) handleError(c *fiber.Ctx, err error) error {
	if len(c.Response().Header.Peek(headerRequestID)) == 0 { // not parsed, so middleware did not run
		c.Set(headerRequestID, requestID(c.Get(headerRequestID)))
	}
	var fe *fiber.Error
	if !errors.As(err, &fe) || fe.Code >= http.StatusInternalServerError {
		return s.writeError(c, s.toHTTPError(c.UserContext(), err))
	}
	out := newError(fe.Code, "")
	switch fe.Code {
	case http.StatusNotFound:
		out.Message = fmt.Sprintf("not found: %s %.200s is not a route; see GET /openapi.json", c.Method(), c.Path())
		if isMem0(c.Path()) {
			out.Message = "not found; this route of the mem0 API is not supported"
		}
	case http.StatusMethodNotAllowed:
		out.Message = methodNotAllowed
		if allowed := s.allowedMethods(c.Path()); allowed != "" {
			c.Set(fiber.HeaderAllow, allowed)
		}
	case http.StatusRequestTimeout:
		out.Message = requestTimeout
	case http.StatusRequestHeaderFieldsTooLarge:
		out.Message = headersTooLarge
	default:
		out.Message = "invalid request: " + strings.ToLower(http.StatusText(fe.Code))
	}
	return s.writeError(c, out)
}

// humaError replaces huma's errors with Error. ctx is nil when huma only needs
// the type.
func humaError(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	out := newError(status, msg)
	switch status {
	case http.StatusRequestEntityTooLarge:
		out.Message = tooLarge(ctx.Operation().MaxBodyBytes - 1).Error()
		return out
	case http.StatusRequestTimeout:
		out.Message = requestTimeout
		return out
	case http.StatusInternalServerError:
		// huma's only 500 here: the body could not be read. It exceeded a limit of the
		// server, or the client disconnected or sent malformed chunks.
		if f, ok := errors.AsType[*fault.Error](errors.Join(errs...)); ok {
			if f.RetryAfter > 0 {
				ctx.SetHeader(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter)) // huma ignores the error's headers here
			}
			return newError(statuses[f.Kind], f.Message)
		}
		return newError(http.StatusBadRequest, incompleteBody)
	}
	if len(errs) > 0 {
		problems := make([]string, len(errs))
		for i, err := range errs {
			problems[i] = problem(err)
		}
		out.Message = strings.Join(problems, "; ")
	}
	return out
}

// problem returns a huma validation error without the echoed input.
func problem(err error) string {
	if d, ok := err.(huma.ErrorDetailer); ok {
		return d.ErrorDetail().Message
	}
	return err.Error()
}
