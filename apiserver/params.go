package apiserver

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// params reads query parameters, which come as text, and collects what is
// wrong with them. An empty one counts as absent.
type params struct{ fault.Fields }

// integer reads a whole number of at least lowest. Numbers too big for
// anything become the biggest there is.
func (p *params) integer(name, text string, otherwise, lowest int) int {
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0:
		return math.MaxInt32
	case err != nil || n < int64(lowest):
		p.Add(name, "takes an integer of at least %d", lowest)
		return otherwise
	}
	return int(n)
}

// boolean reads true, false, 1 or 0.
func (p *params) boolean(name, text string) bool {
	switch strings.ToLower(text) {
	case "true", "1":
		return true
	case "", "false", "0":
	default:
		p.Add(name, "takes true, false, 1 or 0")
	}
	return false
}

// from reads the beginning of a span of time, zero when open.
func (p *params) from(name, text string) time.Time {
	return p.time(name, text, func(s string) (time.Time, error) {
		t, _, err := chat.ParseTime(s)
		return t, err
	})
}

// to reads the end of a span of time, zero when open.
func (p *params) to(name, text string) time.Time {
	return p.time(name, text, chat.ParseEnd)
}

func (p *params) time(name, text string, parse func(string) (time.Time, error)) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := parse(text)
	if err != nil {
		p.Add(name, "takes an ISO 8601 date or time, such as 2025-05-09 or 2025-05-09T14:30:00Z")
	}
	return t
}

// provider reads a platform's name, "" for all.
func provider(text string) string {
	if text == chat.AllPlatforms {
		return ""
	}
	return text
}

// The functions below document query parameters.

func param(name, description string, schema *huma.Schema, example any) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema, Example: example}
}

func intParam(name, description string, otherwise, lowest int, example any) *huma.Param {
	least := float64(lowest)
	return param(name, description, orEmptyText(huma.TypeInteger, &huma.Schema{Default: otherwise, Minimum: &least}), example)
}

// upTo sets the highest number a parameter takes.
func upTo(p *huma.Param, highest int) *huma.Param {
	most := float64(highest)
	p.Schema.Maximum = &most
	return p
}

// dateParam takes a date or a time.
func dateParam(name, description string, example any) *huma.Param {
	p := textParam(name, description, example)
	limitText(p.Schema, dateOrTime)
	return p
}

func boolParam(name, description string) *huma.Param {
	s := orEmptyText(huma.TypeBoolean, &huma.Schema{Default: false})
	s.MaxLength, s.Pattern = nil, `^([01]|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])?$`
	return param(name, description, s, false)
}

// ignoredParam is accepted whatever it is.
func ignoredParam(name, description string, example any) *huma.Param {
	return param(name, description, &huma.Schema{Type: huma.TypeString}, example)
}

func textParam(name, description string, example any) *huma.Param {
	return param(name, description, &huma.Schema{Type: huma.TypeString, Pattern: anyText}, example)
}

func bucketParam(name, description string) *huma.Param {
	return param(name, description, orEmptyText(huma.TypeInteger, &huma.Schema{}), 12)
}

// orEmptyText gives a parameter's schema its type: an empty parameter counts as
// absent.
func orEmptyText(kind string, s *huma.Schema) *huma.Schema {
	none := 0
	s.MaxLength = &none
	extend(s, map[string]any{"type": []string{kind, huma.TypeString}})
	return s
}
