package tenant

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// DatabaseUnavailable is the message of errors while the database is unavailable.
const DatabaseUnavailable = "the database is unavailable; retry"

// The reasons for which a store refuses a user.
var (
	// ErrSuspended refuses every data request of a suspended tenant.
	ErrSuspended error = fault.New(fault.Forbidden, "this tenant is suspended and its data is retained; contact your administrator")
	// ErrSessionEnded means that no session has this cookie.
	ErrSessionEnded error = fault.New(fault.Unauthorized, "the session has ended; sign in again")
	// ErrCredentialEnded means that the credential of a request ended during the request.
	ErrCredentialEnded error = fault.New(fault.Unauthorized, "the token or session has ended")
	// ErrIncorrectPassword does not tell whether the name exists.
	ErrIncorrectPassword error = fault.New(fault.Unauthorized, "incorrect name or password")
	// ErrLinkUsed refuses a sign-in link.
	ErrLinkUsed error = fault.New(fault.Unauthorized, "this link has been used or has expired; sign in with your password, or ask for a new link")
	// ErrNoAccess means that the user is no longer listed, or that the tenant no longer exists.
	ErrNoAccess error = fault.New(fault.Forbidden, "this user no longer has access")
	// ErrAccessRemoved refuses a user of an identity provider whose access was removed.
	ErrAccessRemoved error = fault.New(fault.Forbidden, "your access was removed; contact your administrator")
	// ErrPurging refuses such a user until the data of the removed user is deleted.
	ErrPurging error = fault.New(fault.Conflict, "your previous data is still being deleted; try again in a minute")
	// ErrDeletionFinal means that the time to undo a deletion is over, or that a job ended it.
	ErrDeletionFinal error = fault.New(fault.NotFound, "the deletion can no longer be undone")
	// ErrUserNotFound means that the application has no such user.
	ErrUserNotFound error = fault.New(fault.NotFound, "user not found")
	// ErrUserErased means that the user was erased after the request or job had begun. The API reports it as fault.Unavailable:
	// a retry finds or creates the user of this name.
	ErrUserErased error = fault.New(fault.NotFound, "the user was erased meanwhile; try again")
	// ErrTokenNotFound means that the user has no such token.
	ErrTokenNotFound error = fault.New(fault.NotFound, "token not found")
	// ErrConcurrentUpdates means that other requests changed the same data at each attempt of a write.
	ErrConcurrentUpdates error = fault.New(fault.Unavailable, "too many concurrent updates; retry")
)

// SignInNotEnabled refuses a user of an identity provider whose email domain no tenant has.
func SignInNotEnabled(domain string) error {
	return fault.New(fault.Forbidden, "sign-in is not enabled for %s; contact your administrator", domain)
}

// TooManySignIns refuses a sign-in until wait has passed.
func TooManySignIns(wait time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: wait,
		Message: fmt.Sprintf("too many failed sign-ins; try again in %d min", int((wait+time.Minute-1)/time.Minute))}
}
