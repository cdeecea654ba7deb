package apiserver

import (
	"bytes"
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

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// statuses says how each kind of failure is answered.
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

// defaultRetry is how long to wait when a failure does not say.
const defaultRetry = 5 * time.Second

// tooSlow answers a request whose headers or body stopped coming.
const tooSlow = "the request did not arrive in time; send it again"

// Error is the body of every answer that is not a success.
type Error struct {
	status  int
	headers http.Header

	Message     string   `json:"error" doc:"A sentence a person can act on." example:"text is required and must not be blank"`
	RejectedIDs []string `json:"rejectedIds,omitempty" doc:"The ids a bulk operation refused."`
	RequestID   string   `json:"requestId,omitempty" doc:"Names this request in the server's log; with status 500 only."`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// GetStatus returns the HTTP status, for huma.
func (e *Error) GetStatus() int { return e.status }

// GetHeaders returns what the answer carries beside its body, for huma.
func (e *Error) GetHeaders() http.Header { return e.headers }

// requestFields maps fields of domain inputs to their names in requests.
var requestFields = map[string]string{
	"memory ids": "memoryIds", "target bucket": "bucketId or bucketName", "bucket name": "bucketName",
	"text or bucket": "text, bucketId or bucketName",
}

// answerFor maps an error to its answer and logs what is the server's fault.
// This is the one place where kinds become statuses.
func (s *Server) answerFor(ctx context.Context, err error) *Error {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = &fault.Error{Kind: fault.Internal, Err: err}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			f = &fault.Error{Kind: fault.Unavailable, Message: "this took too long; try again", Err: err}
		}
	}
	f = f.WithFieldNames(requestFields)
	out := &Error{status: statuses[f.Kind], headers: http.Header{}, Message: f.Message, RejectedIDs: f.RejectedIDs}
	switch f.Kind {
	case fault.Internal:
		out.Message, out.RequestID = unexpectedAnswer, requestIDOf(ctx)
		s.Log.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request_id", out.RequestID), slog.Any("error", err))
	case fault.Unavailable:
		s.Log.LogAttrs(ctx, slog.LevelWarn, "a store is away", slog.String("request_id", requestIDOf(ctx)), slog.Any("error", err))
		out.retryAfter(f.RetryAfter)
	case fault.RateLimited:
		out.retryAfter(f.RetryAfter)
	case fault.Unauthorized:
		out.headers.Set("WWW-Authenticate", "Bearer")
	}
	return out
}

func (e *Error) retryAfter(d time.Duration) {
	if d <= 0 {
		d = defaultRetry
	}
	e.headers.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
}

// refuse answers a request from a middleware.
func (s *Server) refuse(ctx huma.Context, err error) {
	if err := s.writeError(fiberCtx(ctx), s.answerFor(ctx.Context(), err)); err != nil {
		panic(err) // recovered at the edge
	}
}

func (s *Server) writeError(c *fiber.Ctx, e *Error) error {
	for name, values := range e.headers {
		c.Set(name, strings.Join(values, ", "))
	}
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	encode.SetEscapeHTML(false) // a person reads it: <API_TOKEN>, not \u003cAPI_TOKEN\u003e
	if err := encode.Encode(e); err != nil {
		return fmt.Errorf("encode the error: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(e.status).Send(b.Bytes())
}

// answerError answers what the router or a panic left: an unknown path, a
// method a path does not have, a request that could not be parsed.
func (s *Server) answerError(c *fiber.Ctx, err error) error {
	if len(c.Response().Header.Peek(headerRequestID)) == 0 { // it could not be parsed: the edge has not seen it
		c.Set(headerRequestID, requestID(c.Get(headerRequestID)))
	}
	var fe *fiber.Error
	if !errors.As(err, &fe) || fe.Code >= http.StatusInternalServerError {
		return s.writeError(c, s.answerFor(c.UserContext(), err))
	}
	out := &Error{status: fe.Code}
	switch fe.Code {
	case http.StatusNotFound:
		out.Message = "there is nothing at this path; GET /openapi.json lists what there is"
	case http.StatusMethodNotAllowed:
		out.Message = wrongMethod
		if allowed := s.methodsOf(c.Path()); allowed != "" {
			c.Set(fiber.HeaderAllow, allowed)
		}
	case http.StatusRequestTimeout:
		out.Message = tooSlow
	case http.StatusRequestHeaderFieldsTooLarge:
		out.Message = headersTooLarge
	default:
		out.Message = "the request could not be read: " + strings.ToLower(http.StatusText(fe.Code))
	}
	return s.writeError(c, out)
}

// humaError makes huma's own errors ours. ctx is nil for the one it makes to
// learn the type.
func humaError(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
	out := &Error{status: status, Message: msg}
	switch status {
	case http.StatusUnprocessableEntity:
		out.status = http.StatusBadRequest
	case http.StatusRequestEntityTooLarge:
		out.Message = tooLarge(ctx.Operation().MaxBodyBytes - 1).Error()
		return out
	case http.StatusRequestTimeout:
		out.Message = tooSlow
		return out
	case http.StatusInternalServerError:
		// Of what huma itself answers with 500, only this occurs: the client
		// went away or its chunks are malformed.
		return &Error{status: http.StatusBadRequest, Message: "the body could not be read to its end"}
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

// problem is a validation error of huma without its echo of the input.
func problem(err error) string {
	if d, ok := err.(huma.ErrorDetailer); ok {
		return d.ErrorDetail().Message
	}
	return err.Error()
}
