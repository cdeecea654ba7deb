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

// TokenKind is the purpose of a secret.
type TokenKind string

// The kinds of secrets.
const (
	APIToken     TokenKind = "api"     // a user's token for the whole API
	KeyToken     TokenKind = "key"     // an application's key
	AccessToken  TokenKind = "access"  // short-lived token of an app
	RefreshToken TokenKind = "refresh" // exchanged for new tokens
	Code         TokenKind = "code"    // exchanged for the first tokens
)

// prefixes are the prefixes of secrets.
var prefixes = map[TokenKind]string{APIToken: "mn_", KeyToken: "mnk_", AccessToken: "mna_", RefreshToken: "mnr_", Code: "mnc_"}

const (
	secretCell   = 3  // hexadecimal digits of the database cell
	secretRandom = 29 // base62 digits, 172 bits
	tokenBody    = secretCell + secretRandom
	tokenCheck   = 6 // base62 digits of a CRC-32 over everything before
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	passwordSize = 24 // base62 digits, 142 bits
)

// Hash is the SHA-256 of a token or generated password, the only form stored.
type Hash [sha256.Size]byte

// Issuer is the component or user that created a token.
type Issuer string

// The issuers of tokens.
const (
	IssuerOperator Issuer = "operator"
	IssuerUser     Issuer = "user" // regenerated in the dashboard
)

// Credential is a generation of a user's token and password.
type Credential struct {
	Generation   int64 // monotonic per user; installing an older or equal one is a Conflict
	TokenHash    Hash
	PasswordHash Hash // zero keeps the current password
	Issuer       Issuer
}

// TokenInfo describes a token without containing it.
type TokenInfo struct {
	Generation  int64
	Fingerprint string // first 12 hex digits of the hash
	Issuer      Issuer
	CreatedAt   time.Time
	LastUsedAt  time.Time // zero if never used; accurate to a minute
	ExpiresAt   time.Time // zero if it does not expire
}

// NewToken returns a new API token: "mn_", the database cell as 3 hexadecimal digits, 29
// random base62 digits and a 6-digit CRC-32, which lets secret scanners recognize leaked
// tokens.
func NewToken(cell DatabaseCell, random io.Reader) (string, error) {
	return NewTokenOf(APIToken, cell, random)
}

// NewTokenOf returns a new secret of a kind, in the same format.
func NewTokenOf(kind TokenKind, cell DatabaseCell, random io.Reader) (string, error) {
	digits, err := newSecret(cell, random)
	if err != nil {
		return "", fmt.Errorf("generate token: %w", err)
	}
	body := prefixes[kind] + digits
	return body + checksum(body), nil
}

// newSecret returns the digits of the cell and random ones.
func newSecret(cell DatabaseCell, random io.Reader) (string, error) {
	digits, err := randomDigits(random, secretRandom)
	return cell.String() + digits, err
}

// NewPassword returns a new password with 142 random bits.
func NewPassword(random io.Reader) (string, error) {
	digits, err := randomDigits(random, passwordSize)
	if err != nil {
		return "", fmt.Errorf("generate password: %w", err)
	}
	return digits, nil
}

// IsToken reports whether s has the format of an API token, including its
// checksum.
func IsToken(s string) bool { return APIToken.Is(s) }

// Is reports whether s has the format of the kind, including its checksum.
func (k TokenKind) Is(s string) bool {
	prefix := prefixes[k]
	n := len(prefix) + tokenBody
	return len(s) == n+tokenCheck && strings.HasPrefix(s, prefix) && checksum(s[:n]) == s[n:]
}

// HashSecret returns the stored form of a token or generated password.
func HashSecret(s string) Hash { return sha256.Sum256([]byte(s)) }

// Fingerprint returns a short form of a hash for telling tokens apart.
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
	// The 16 additional bytes make the bias of the remainder negligible.
	raw := make([]byte, (limit.BitLen()+7)/8+16)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", err
	}
	v := new(big.Int).Mod(new(big.Int).SetBytes(raw), limit)
	s := v.Text(62)
	return strings.Repeat("0", n-len(s)) + s, nil
}
