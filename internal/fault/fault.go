package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what sort of failure an error is. The zero Kind is Internal.
type Kind uint8

// The kinds, each with the HTTP status shared/API.md gives it.
const (
	Internal     Kind = iota // 500: ours; the message is not shown
	Invalid                  // 400: the input is wrong; the message names the field
	Unauthorized             // 401: token missing, malformed, unknown or revoked
	Forbidden                // 403: tenant suspended or a stored quota is used up
	NotFound                 // 404: something named does not exist under the caller's scope
	Conflict                 // 409: a name is taken, or an idempotency key was used for another request
	TooLarge                 // 413: the body is too large
	Unsupported              // 415: the body is not JSON
	RateLimited              // 429: too many requests; RetryAfter is set
	Unavailable              // 503: a store is away; RetryAfter is set
)

var names = [...]string{"Internal", "Invalid", "Unauthorized", "Forbidden", "NotFound",
	"Conflict", "TooLarge", "Unsupported", "RateLimited", "Unavailable"}

// String returns the kind's CamelCase name.
func (k Kind) String() string { return names[k] }

// Error is an error with a kind.
type Error struct {
	Kind    Kind
	Message string // shown to the caller, except for Internal
	// RejectedIDs lists the ids a bulk operation refused; nil otherwise.
	RejectedIDs []string
	// RetryAfter is how long to wait before trying again; 0 means unsaid.
	RetryAfter time.Duration
	Err        error // the cause, for logs; may be nil
}

// Error returns the message, and the cause where there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind with a formatted message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a message that may be shown; err itself is kept for
// logs. Wrap(nil) is nil.
func Wrap(kind Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: err}
}

// KindOf returns the kind of the first Error in err's chain, Internal without one.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// Join makes one Invalid error of those that are not nil; none makes nil.
func Join(errs ...error) error {
	var messages []string
	for _, err := range errs {
		if err != nil {
			messages = append(messages, err.Error())
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return New(Invalid, "%s", strings.Join(messages, "; "))
}
