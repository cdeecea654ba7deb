package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies an error. The zero Kind is Internal.
type Kind uint8

// The kinds, each with its HTTP status.
const (
	Internal     Kind = iota // 500: a bug; the message is not shown
	Invalid                  // 400: the input is invalid; the message names the field
	Unauthorized             // 401: token missing, malformed, unknown or revoked
	Forbidden                // 403: the tenant is suspended or a quota is exceeded
	NotFound                 // 404: the object does not exist in the caller's scope
	Conflict                 // 409: the name exists, or the idempotency key was used for another request
	TooLarge                 // 413: the body is too large
	Unsupported              // 415: the media type is not supported
	RateLimited              // 429: too many requests; RetryAfter is set
	Unavailable              // 503: a dependency is unavailable; RetryAfter is set
)

var names = [...]string{"Internal", "Invalid", "Unauthorized", "Forbidden", "NotFound",
	"Conflict", "TooLarge", "Unsupported", "RateLimited", "Unavailable"}

// String returns the kind's CamelCase name.
func (k Kind) String() string { return names[k] }

// Error is an error with a kind.
type Error struct {
	Kind    Kind
	Message string // shown to the caller unless the kind is Internal
	// Fields lists the invalid fields of an input; nil otherwise.
	Fields []Field
	// RejectedIDs lists the ids a bulk operation rejected; nil otherwise.
	RejectedIDs []string
	// RetryAfter is the delay before a retry; 0 if unknown.
	RetryAfter time.Duration
	Err        error // the cause, for logs; may be nil
}

// Error returns the message followed by the cause, if any.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of the given kind with a formatted message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns err with a kind and a message for the caller; the cause is only
// logged. Wrap returns nil if err is nil.
func Wrap(kind Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: err}
}

// KindOf returns the kind of the first Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
