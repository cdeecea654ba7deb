package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"strings"
	"time"
)

// TokenKind says what a secret is for.
type TokenKind string

// The kinds of secrets.
const (
	APIToken     TokenKind = "api"     // a user's own, for all of the API
	AccessToken  TokenKind = "access"  // a program's, for a short while
	RefreshToken TokenKind = "refresh" // with which it gets the next ones
	Code         TokenKind = "code"    // with which it gets the first ones
)

// prefixes are what secrets begin with.
var prefixes = map[TokenKind]string{APIToken: "mn_", AccessToken: "mna_", RefreshToken: "mnr_", Code: "mnc_"}

const (
	tokenRandom  = 32 // base62 digits, 190 bits
	tokenCheck   = 6  // base62 digits of a CRC-32 over prefix and random part
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	passwordSize = 24 // base62 digits, 142 bits
)

// Hash is the SHA-256 of a token or generated password, the only form stored.
type Hash [sha256.Size]byte

// Issuer says who made a token.
type Issuer string

// The issuers of tokens.
const (
	IssuerOperator Issuer = "operator"
	IssuerUser     Issuer = "user" // regenerated in the dashboard
)

// Credential is a generation of a user's token and password as installed.
type Credential struct {
	Generation   int64 // monotonic per user; installing an older or equal one is a Conflict
	TokenHash    Hash
	PasswordHash Hash // zero keeps the password as it is
	Issuer       Issuer
}

// TokenInfo describes a token without holding it.
type TokenInfo struct {
	Generation  int64
	Fingerprint string // first 12 hex digits of the hash
	Issuer      Issuer
	CreatedAt   time.Time
	LastUsedAt  time.Time // zero when never used; exact to a minute
}

// NewToken makes an API token from random bytes: "mn_", 32 random base62 digits
// and a 6-digit CRC-32, so that scanners can tell a leaked one from noise.
func NewToken(random io.Reader) (string, error) { return NewTokenOf(APIToken, random) }

// NewTokenOf makes a secret of a kind, in the same form.
func NewTokenOf(kind TokenKind, random io.Reader) (string, error) {
	digits, err := randomDigits(random, tokenRandom)
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	body := prefixes[kind] + digits
	return body + checksum(body), nil
}

// NewPassword makes a password of 142 random bits.
func NewPassword(random io.Reader) (string, error) {
	digits, err := randomDigits(random, passwordSize)
	if err != nil {
		return "", fmt.Errorf("make password: %w", err)
	}
	return digits, nil
}

// IsToken reports whether s has the form of an API token, its checksum included.
func IsToken(s string) bool { return APIToken.Is(s) }

// Is reports whether s has the form of the kind, its checksum included.
func (k TokenKind) Is(s string) bool {
	prefix := prefixes[k]
	n := len(prefix) + tokenRandom
	return len(s) == n+tokenCheck && strings.HasPrefix(s, prefix) && checksum(s[:n]) == s[n:]
}

// HashSecret returns the stored form of a token or generated password.
func HashSecret(s string) Hash { return sha256.Sum256([]byte(s)) }

// Fingerprint names a hash so that a person can tell tokens apart.
func (h Hash) Fingerprint() string { return hex.EncodeToString(h[:6]) }

func checksum(body string) string {
	n := crc32.ChecksumIEEE([]byte(body))
	var out [tokenCheck]byte
	for i := tokenCheck - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out[:])
}

func randomDigits(random io.Reader, n int) (string, error) {
	limit := new(big.Int).Exp(big.NewInt(62), big.NewInt(int64(n)), nil)
	// 16 bytes over what is needed make the bias of the remainder negligible.
	raw := make([]byte, (limit.BitLen()+7)/8+16)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", err
	}
	v := new(big.Int).Mod(new(big.Int).SetBytes(raw), limit)
	s := v.Text(62)
	return strings.Repeat("0", n-len(s)) + s, nil
}
