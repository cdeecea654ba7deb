package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// api is a user of a server.
type api struct {
	url, token string
	http       *http.Client
	user       string // for whom an application acts, if the token is its key
}

// responses are buffers for the bodies of responses.
var responses = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// do sends a request, decodes the response into out and returns the time until its body was read.
func (a api) do(tb testing.TB, method, path string, body, out any) time.Duration {
	tb.Helper()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			tb.Fatal(err)
		}
	}
	began := time.Now()
	request, err := http.NewRequestWithContext(tb.Context(), method, a.url+path, bytes.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	if a.user != "" {
		request.Header.Set("X-Mnemo-User", a.user)
	}
	response, err := a.http.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	// New memory would add to the time of long responses.
	raw := responses.Get().(*bytes.Buffer)
	defer responses.Put(raw)
	raw.Reset()
	raw.Grow(int(max(response.ContentLength, 0)) + bytes.MinRead)
	_, err = raw.ReadFrom(response.Body)
	took := time.Since(began)
	if err != nil || response.StatusCode != http.StatusOK {
		tb.Fatalf("%s %s: %s, %v\n%.500s", method, path, response.Status, err, raw)
	}
	if out != nil {
		if err := json.Unmarshal(raw.Bytes(), out); err != nil {
			tb.Fatal(err)
		}
	}
	return took
}

func (a api) create(tb testing.TB, text string) (id string, took time.Duration) {
	tb.Helper()
	var out struct{ MemoryID string }
	took = a.do(tb, http.MethodPost, "/api/memory", map[string]string{"text": text}, &out)
	return out.MemoryID, took
}

// texts returns the texts of a search or, without a query, of a listing.
func (a api) texts(tb testing.TB, query string, count int) (texts []string, took time.Duration) {
	tb.Helper()
	var out struct{ Memories []struct{ Text string } }
	q := url.Values{"count": {fmt.Sprint(count)}}
	if query != "" {
		q.Set("query", query)
	}
	took = a.do(tb, http.MethodGet, "/api/v2/memory?"+q.Encode(), nil, &out)
	for _, m := range out.Memories {
		texts = append(texts, m.Text)
	}
	return texts, took
}

// ids returns the ids of all memories.
func (a api) ids(tb testing.TB) (ids []string) {
	tb.Helper()
	var out struct{ Memories []struct{ ID string } }
	a.do(tb, http.MethodGet, "/api/v2/memory?all=true", nil, &out)
	for _, m := range out.Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

// writer generates texts whose words are distributed as in a language: some are frequent, many rare.
type writer struct{ *rand.Rand }

func newWriter(seed uint64) writer { return writer{rand.New(rand.NewPCG(seed, 1))} }

// text returns a text of n words.
func (w writer) text(n int) string {
	const syllables = "ba de fi go ku la me ni po ru sa te vi wo zu "
	words := make([]string, n)
	for i := range words {
		x := w.Float64()
		for rank := int(3000 * x * x * x); ; rank /= 15 {
			words[i] += syllables[rank%15*3 : rank%15*3+2]
			if rank < 15 {
				break
			}
		}
	}
	return strings.Join(words, " ")
}

// memory returns a text of the length of a typical memory.
func (w writer) memory() string { return "2026-03-01 " + w.text(12+w.IntN(20)) }
