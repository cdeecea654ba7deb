package secrettest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Recorder sends requests with Next. It adds the secrets that they and their responses
// contain to Secrets, and keeps the responses with an error. Every request is traced, so
// that the server exports its spans.
type Recorder struct {
	Next    http.RoundTripper
	Secrets *Secrets

	mu     sync.Mutex
	errors strings.Builder
}

// maxError is how much of a response with an error is kept, in bytes.
const maxError = 64 << 10

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.learnRequest(q)
	if q.Header.Get("Traceparent") == "" {
		id := make([]byte, 24)
		_, _ = rand.Read(id)
		q = q.Clone(q.Context())
		q.Header.Set("Traceparent", "00-"+hex.EncodeToString(id[:16])+"-"+hex.EncodeToString(id[16:])+"-01")
	}
	resp, err := r.Next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	r.learnRedirect(resp)
	issues := q.Method == http.MethodPost && slices.Contains([]string{"/token", "/connect/token", "/connect/password"}, q.URL.Path)
	if issues || resp.StatusCode >= http.StatusBadRequest {
		body, err := peek(resp)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= http.StatusBadRequest {
			r.keep(q, resp, body)
		} else {
			r.learnBody(body)
		}
	}
	return resp, nil
}

// Errors returns the headers and bodies of all responses with an error.
func (r *Recorder) Errors() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors.String()
}

func (r *Recorder) keep(q *http.Request, resp *http.Response, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.errors, "%s %s: %s %v\n%.*s\n", q.Method, q.URL.Path, resp.Status, resp.Header, maxError, body)
}

// learnRequest adds the secrets of a request: tokens, and those of OAuth and of forms.
func (r *Recorder) learnRequest(q *http.Request) {
	if token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer "); ok {
		r.Secrets.Add("token", token)
	}
	if q.GetBody == nil || q.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return
	}
	body, err := q.GetBody()
	if err != nil {
		return
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return
	}
	for field, name := range map[string]string{"password": "password", "code": "authorization code", "code_verifier": "PKCE verifier", "refresh_token": "refresh token"} {
		r.Secrets.Add(name, form.Get(field))
	}
}

// learnRedirect adds the cookies of a response, and the secrets in the address to which
// it leads.
func (r *Recorder) learnRedirect(resp *http.Response) {
	for _, c := range resp.Cookies() {
		r.Secrets.Add("cookie "+c.Name, c.Value)
		r.learnAttempt(c.Value)
	}
	if to, err := resp.Location(); err == nil {
		r.Secrets.Add("authorization code", to.Query().Get("code"))
		r.Secrets.Add("nonce", to.Query().Get("nonce"))
		if to.Query().Has("nonce") { // a sign-in at an identity provider; the state of an app is its own
			r.Secrets.Add("state", to.Query().Get("state"))
		}
	}
}

// learnAttempt adds the PKCE verifier of a sign-in at an identity provider, which is in a
// cookie.
func (r *Recorder) learnAttempt(cookie string) {
	var attempt struct{ Verifier string }
	if raw, err := base64.RawURLEncoding.DecodeString(cookie); err == nil && json.Unmarshal(raw, &attempt) == nil {
		r.Secrets.Add("PKCE verifier", attempt.Verifier)
	}
}

var (
	issued      = regexp.MustCompile(`\bmn([arc]?)_[0-9A-Za-z]{38}\b`)
	newPassword = regexp.MustCompile(`id="new-password">([0-9A-Za-z]{24})<`)
)

// learnBody adds the tokens and the password that a response issues.
func (r *Recorder) learnBody(body []byte) {
	names := map[string]string{"": "token", "a": "access token", "r": "refresh token", "c": "authorization code"}
	for _, m := range issued.FindAllSubmatch(body, -1) {
		r.Secrets.Add(names[string(m[1])], string(m[0]))
	}
	if m := newPassword.FindSubmatch(body); m != nil {
		r.Secrets.Add("password", string(m[1]))
	}
}

// peek reads the body of a response and replaces it by a copy.
func peek(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}
