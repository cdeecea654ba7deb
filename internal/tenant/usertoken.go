package tenant

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// MaxUserTokens is the maximum number of valid tokens that a user has created.
	MaxUserTokens = 50
	// maxTokenName is the length limit of the name of a token, characters.
	maxTokenName = 100
)

// UserToken describes a token that a user created, without containing it.
type UserToken struct {
	ID          string
	Name        string // unique among the user's tokens, without regard to case
	Access      Access
	Fingerprint string
	CreatedAt   time.Time
	LastUsedAt  time.Time // zero if never used; accurate to a minute
	ExpiresAt   time.Time // zero if it does not expire
}

// TokenInput describes a token to create.
type TokenInput struct {
	Name      string
	Scopes    []string  // at least one of read, write and admin
	ExpiresAt time.Time // zero if it does not expire
}

// validate returns one Invalid error for all invalid fields.
func (in TokenInput) validate(now time.Time) error {
	var f fault.Fields
	name := strings.TrimSpace(in.Name)
	switch n := utf8.RuneCountInString(name); {
	case textrule.IsBlank(name):
		f.Add("name", "is required and must not be blank")
	case !utf8.ValidString(name):
		f.Add("name", "must not contain line breaks or control characters")
	case textrule.NameProblem(in.Name) != "":
		f.Add("name", "%s", textrule.NameProblem(in.Name))
	case n > maxTokenName:
		f.Add("name", "must be at most %d characters, not %d", maxTokenName, n)
	}
	if len(in.Scopes) == 0 {
		f.Add("scopes", "must be one or more of read, write and admin")
	}
	for i, s := range in.Scopes {
		if TokenAccess([]string{s}) == 0 {
			f.Add(fmt.Sprintf("scopes[%d]", i), "must be read, write or admin")
			break
		}
	}
	if !in.ExpiresAt.IsZero() && !in.ExpiresAt.After(now) {
		f.Add("expiry", "must be in the future")
	}
	return f.Err()
}

// NewUserToken is a token to store.
type NewUserToken struct {
	Name      string
	Access    Access
	Hash      Hash
	ExpiresAt time.Time // zero if it does not expire
}

// UserTokenStore stores the tokens that users create. internal/postgres implements it.
type UserTokenStore interface {
	// UserTokens returns the user's valid tokens, newest first.
	UserTokens(ctx context.Context, scope Scope) ([]UserToken, error)
	// UserTokenNames returns the names of the user's tokens by their fingerprints, also of
	// those that ended within the last 30 days.
	UserTokenNames(ctx context.Context, scope Scope) (map[string]string, error)
	// CreateUserToken stores a token that expires no later than the credential of the
	// context's actor. Unauthorized if that credential has ended, Forbidden if the user has
	// no access; see CheckNewToken for others.
	CreateUserToken(ctx context.Context, scope Scope, in NewUserToken) (UserToken, error)
	// RevokeUserToken revokes a token and notifies every replica. NotFound if the user
	// has no valid token of this id.
	RevokeUserToken(ctx context.Context, scope Scope, id string) error
}

// UserTokens creates tokens for users.
type UserTokens struct {
	Store  UserTokenStore
	Cell   DatabaseCell     // of the store
	Random io.Reader        // source of secrets; crypto/rand if nil
	Now    func() time.Time // time.Now if nil
}

// Create creates a token and returns its description and its secret, which cannot be read
// again. The token has no scope that the caller's credential lacks (InsufficientScope), and
// expires no later. Conflict if the user has a token of this name, QuotaExceeded at
// MaxUserTokens.
func (t UserTokens) Create(ctx context.Context, who Identity, in TokenInput) (UserToken, string, error) {
	now, random := t.Now, t.Random
	if now == nil {
		now = time.Now
	}
	if random == nil {
		random = rand.Reader
	}
	if err := in.validate(now()); err != nil {
		return UserToken{}, "", err
	}
	access := TokenAccess(in.Scopes)
	if err := who.Access.Require(access); err != nil {
		return UserToken{}, "", err
	}
	secret, err := NewToken(t.Cell, random)
	if err != nil {
		return UserToken{}, "", fmt.Errorf("create token: %w", err)
	}
	created, err := t.Store.CreateUserToken(ctx, who.Scope, NewUserToken{
		Name: strings.TrimSpace(in.Name), Access: access, Hash: HashSecret(secret), ExpiresAt: in.ExpiresAt,
	})
	return created, secret, err
}

// CheckNewToken returns an error unless a user with the tokens may have one more, of the name.
func CheckNewToken(stored []UserToken, name string) error {
	for _, s := range stored {
		if strings.EqualFold(s.Name, name) {
			return fault.New(fault.Conflict, "a token named %q already exists; choose another name", s.Name)
		}
	}
	if len(stored) >= MaxUserTokens {
		return QuotaExceeded{Resource: ResourceTokens, Limit: MaxUserTokens, Used: int64(len(stored))}
	}
	return nil
}
