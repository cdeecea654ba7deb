package oauth

import (
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

var (
	// ErrSessionEnded means that the user who authorizes an app is no longer signed in.
	ErrSessionEnded error = fault.New(fault.Forbidden, "your session has ended; sign in again")
	// ErrSecretUnknown refuses a code or refresh token.
	ErrSecretUnknown error = fault.New(fault.NotFound, "it is unknown, has expired or was used before")
	// ErrNotConnected means that the user has no such connected app.
	ErrNotConnected error = fault.New(fault.NotFound, "app not connected")
)

// TooManyRegistrations refuses a client until wait has passed.
func TooManyRegistrations(wait time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: wait,
		Message: "too many apps were registered from this address; try again in a few minutes"}
}
