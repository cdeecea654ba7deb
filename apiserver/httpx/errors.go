package httpx

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
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Messages of errors, for the documentation of the API.
const (
	InternalError   = "internal error; details are logged under the request ID"
	HeadersTooLarge = "URL and headers must be at most 16 KiB in total"
	// RequestTimeout is for a request whose headers or body stalled.
	RequestTimeout = "request timed out; send it again"

	// requestTooLong is for a request that was not finished within its deadline.
	requestTooLong   = "request timed out; try again"
	methodNotAllowed = "method not allowed; see the Allow header"
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

// StatusCode returns the code of errors with a status that have no more specific one.
func StatusCode(status int) string { return cmp.Or(statusCodes[status], "invalid") }

// NewError returns an error response without a more specific code.
func NewError(status int, message string) *Error {
	return &Error{status: status, Message: message, Code: StatusCode(status)}
}

// defaultRetry is the Retry-After of errors that specify none.
const defaultRetry = 5 * time.Second

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

// ErrorOf maps an error to its response and logs server errors. names are the names of fields in
// requests. It is the only place where error kinds become statuses.
func ErrorOf(ctx context.Context, log *slog.Logger, err error, names map[string]string) *Error {
	f := kindOf(ctx, err).WithFieldNames(names)
	status := statuses[f.Kind]
	out := &Error{status: status, headers: http.Header{}, Message: f.Message, Code: StatusCode(status), RejectedIDs: f.RejectedIDs}
	switch f.Kind {
	case fault.Internal:
		out.Message, out.RequestID = InternalError, RequestIDOf(ctx)
		log.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request_id", out.RequestID), slog.Any("error", err))
	case fault.Unavailable:
		log.LogAttrs(ctx, slog.LevelWarn, "dependency unavailable", slog.String("request_id", RequestIDOf(ctx)), slog.Any("error", err))
		out.headers.Set(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter))
	case fault.RateLimited:
		out.headers.Set(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter))
	case fault.Unauthorized:
		out.headers.Set("WWW-Authenticate", "Bearer")
	}
	return out
}

// kindOf returns the error with its kind.
func kindOf(ctx context.Context, err error) *fault.Error {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		f = &fault.Error{Kind: fault.Unavailable, Message: requestTooLong, Err: err}
	default:
		f = &fault.Error{Kind: fault.Internal, Err: err}
	}
	if f.Kind == fault.Unavailable && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// Whatever the request waited for last may be available.
		f = &fault.Error{Kind: fault.Unavailable, Message: requestTooLong, RetryAfter: f.RetryAfter, Err: err}
	}
	return f
}

// ErrorOfStatus returns the response to a request without a route, or that cannot be parsed. allowed
// returns the Allow header of a path.
func ErrorOfStatus(c *fiber.Ctx, status int, allowed func(path string) string) *Error {
	out := NewError(status, "invalid request: "+strings.ToLower(http.StatusText(status)))
	switch status {
	case http.StatusNotFound:
		out.Message = fmt.Sprintf("not found: %s %.200s is not a route; see GET /openapi.json", c.Method(), c.Path())
	case http.StatusMethodNotAllowed:
		out.Message = methodNotAllowed
		if allowed := allowed(c.Path()); allowed != "" {
			out.headers = http.Header{fiber.HeaderAllow: {allowed}}
		}
	case http.StatusRequestTimeout:
		out.Message = RequestTimeout
	case http.StatusRequestHeaderFieldsTooLarge:
		out.Message = HeadersTooLarge
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

// SetHeaders sets the headers of an error response.
func (e *Error) SetHeaders(c *fiber.Ctx) {
	for name, values := range e.headers {
		c.Set(name, strings.Join(values, ", "))
	}
}

// SendJSON sends a body that is not one of huma's.
func SendJSON(c *fiber.Ctx, status int, body any) error {
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	encode.SetEscapeHTML(false) // keep <API_TOKEN> readable
	if err := encode.Encode(body); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(status).Send(b.Bytes())
}

// ConfigureHuma sets the package variables of huma, once: errors are of this package, and arrays
// are never null.
var ConfigureHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaError(nil, status, msg, errs...)
	}
	huma.NewErrorWithContext = humaError
})

// humaError replaces huma's errors with Error. ctx is nil when huma only needs
// the type.
func humaError(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	out := NewError(status, msg)
	switch status {
	case http.StatusRequestEntityTooLarge:
		out.Message = tooLarge(ctx.Operation().MaxBodyBytes - 1).Error()
		return out
	case http.StatusRequestTimeout:
		out.Message = RequestTimeout
		return out
	case http.StatusInternalServerError:
		// huma's only 500 here: the body could not be read. It exceeded a limit of the
		// server, or the client disconnected or sent malformed chunks.
		if f, ok := errors.AsType[*fault.Error](errors.Join(errs...)); ok {
			if f.RetryAfter > 0 {
				ctx.SetHeader(fiber.HeaderRetryAfter, retryAfter(f.RetryAfter)) // huma ignores the error's headers here
			}
			return NewError(statuses[f.Kind], f.Message)
		}
		return NewError(http.StatusBadRequest, incompleteBody)
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
