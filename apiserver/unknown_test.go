package apiserver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// A misspelled query parameter is named, on routes with and without parameters, and whether the request succeeds or not.
func TestWarningNamesUnknownParameters(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for path, want := range map[string][]string{
		"/api/memory?count=5&skip=0&query=tea&source=cli":  nil,
		"/api/memory?count=5&limit=3&caf%C3%A9=1&limit=4":  {`299 - "unknown query parameter limit"`, `299 - "unknown query parameter caf\u00e9"`},
		"/api/memory?cuont=5&count=x":                      {`299 - "unknown query parameter cuont"`},
		"/api/chat-history/count?foo":                      {`299 - "unknown query parameter foo"`},
		"/api/export?format=json":                          {`299 - "unknown query parameter format"`},
		"/api/chat-history/imports/x/events?lastEventId=1": {`299 - "unknown query parameter lastEventId"`},
		"/api/buckets?" + strings.Repeat("x", 101):         {`299 - "unknown query parameter ` + strings.Repeat("x", 100) + `..."`},
	} {
		got := h.call(t, h.alice, "GET", path, "")
		if warnings := got.header.Values("Warning"); !slices.Equal(warnings, want) {
			t.Errorf("%s: status %d, warnings %q, want %q", path, got.status, warnings, want)
		}
	}
	const most = 10
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "&x%d=1", i)
	}
	if n := len(h.call(t, h.alice, "GET", "/api/buckets?"+many.String(), "").header.Values("Warning")); n != most {
		t.Errorf("%d warnings, want %d", n, most)
	}
}

// No documented parameter is unknown.
func TestNoWarningOfDocumentedParameters(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for path, item := range h.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PATCH": item.Patch, "DELETE": item.Delete} {
			if op == nil {
				continue
			}
			query := url.Values{}
			for _, p := range op.Parameters {
				if p.In == "query" {
					query.Set(p.Name, "1")
				}
			}
			got := h.call(t, h.alice, method, path+"?"+query.Encode(), "")
			if warnings := got.header.Values("Warning"); len(warnings) > 0 {
				t.Errorf("%s %s: %q", method, path, warnings)
			}
		}
	}
}

// A misspelled field is named, whether the request succeeds or not.
func TestWarningNamesUnknownFields(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for body, want := range map[string][]string{
		`{"text":"2026-05-03 Likes tea","bucketID":1}`:                 {`299 - "unknown field bucketID"`},
		`{"text":"2026-05-03 Likes tea","bucket":"x","caf\u00e9\n":1}`: {`299 - "unknown field bucket"`, `299 - "unknown field caf\u00e9\n"`},
		`{"txt":"2026-05-03 Likes tea"}`:                               {`299 - "unknown field txt"`},
	} {
		got := h.call(t, h.alice, "POST", "/api/memory", body)
		if warnings := got.header.Values("Warning"); !slices.Equal(warnings, want) {
			t.Errorf("%s: status %d, warnings %q, want %q", body, got.status, warnings, want)
		}
	}
}
