package secrettest

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// MinLength is the length from which a secret cannot occur in a text by chance.
const MinLength = 12

// Secrets are the secrets of a run. They are safe for concurrent use.
type Secrets struct {
	mu    sync.Mutex
	names map[string]string // name by form of a secret
	index map[string][]string
}

// Add adds a secret. It reports false if the secret is too short to search for.
func (s *Secrets) Add(name, secret string) bool {
	if len(secret) < MinLength {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names, s.index = map[string]string{}, map[string][]string{}
	}
	for _, form := range forms(secret) {
		if _, known := s.names[form]; !known {
			s.names[form] = name
			s.index[form[:MinLength]] = append(s.index[form[:MinLength]], form)
		}
	}
	return true
}

// Names returns the sorted names of the secrets.
func (s *Secrets) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range s.names {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Find returns the sorted names of the secrets that the text contains, in any form.
func (s *Secrets) Find(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for i := range max(len(text)-MinLength+1, 0) {
		for _, form := range s.index[text[i:i+MinLength]] {
			if strings.HasPrefix(text[i:], form) {
				found = append(found, s.names[form])
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// forms returns the secret as it may be written: verbatim, escaped in a URL, as
// hexadecimal digits, and in base64 at each of the three alignments, as in an
// Authorization header.
func forms(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	out := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), digits, strings.ToUpper(digits)}
	for skip := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", skip) + secret))
		// Without the digits that also depend on what precedes or follows.
		inner := whole[[]int{0, 2, 3}[skip] : (skip+len(secret))*8/6]
		if len(inner) >= MinLength {
			out = append(out, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
		}
	}
	return out
}
