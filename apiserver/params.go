package apiserver

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// params parses query parameters and collects their errors. An empty parameter
// counts as absent.
type params struct {
	httpx.Params
	zone *time.Location // of times without a zone; nil for UTC
}

// timeZone parses the name of the zone of from and to, and returns the zone.
func (p *params) timeZone(name *string) *time.Location {
	zone, err := chat.ParseZone(value(name, ""))
	if err != nil {
		p.Add("timeZone", chat.ZoneRule)
		return time.UTC
	}
	p.zone = zone
	return zone
}

// from parses the start of a time range, zero if open.
func (p *params) from(name, text string) time.Time {
	return p.time(name, text, func(s string, zone *time.Location) (time.Time, error) {
		t, _, err := chat.ParseTime(s, zone)
		return t, err
	})
}

// to parses the end of a time range, zero if open.
func (p *params) to(name, text string) time.Time {
	return p.time(name, text, chat.ParseEnd)
}

func (p *params) time(name, text string, parse func(string, *time.Location) (time.Time, error)) time.Time {
	if text == "" {
		return time.Time{}
	}
	zone := p.zone
	if zone == nil {
		zone = time.UTC
	}
	t, err := parse(text, zone)
	if err != nil {
		p.Add(name, "must be an ISO 8601 date or time, such as 2025-05-09 or 2025-05-09T14:30:00Z")
	}
	return t
}

// The functions below return the OpenAPI documentation of query parameters.

func param(name, description string, schema *huma.Schema, example any) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema, Example: example}
}

func intParam(name, description string, fallback, minimum int, example any) *huma.Param {
	least := float64(minimum)
	return param(name, description, &huma.Schema{Type: huma.TypeInteger, Default: fallback, Minimum: &least}, example)
}

func scoreParam(name, description string) *huma.Param {
	least, most := 0.0, 1.0
	return param(name, description, &huma.Schema{Type: huma.TypeNumber, Minimum: &least, Maximum: &most}, 0.5)
}

// upTo sets the maximum of a parameter.
func upTo(p *huma.Param, highest int) *huma.Param {
	most := float64(highest)
	p.Schema.Maximum = &most
	return p
}

func boolParam(name, description string) *huma.Param {
	return param(name, description, &huma.Schema{Type: huma.TypeBoolean, Default: false}, false)
}

// ignoredParam documents a parameter that accepts any value.
func ignoredParam(name, description string, example any) *huma.Param {
	return param(name, description, &huma.Schema{Type: huma.TypeString}, example)
}

// queryParam is a parameter with the text of a query.
func queryParam(name, description string, example any) *huma.Param {
	p := textParam(name, description, example)
	p.Schema.MaxLength = new(retrieve.MaxQuery)
	return p
}

func textParam(name, description string, example any) *huma.Param {
	return param(name, description, &huma.Schema{Type: huma.TypeString, Pattern: anyText}, example)
}

// filterParam documents a filter of memories, encoded as JSON.
func filterParam(name string) *huma.Param {
	return param(name, "A filter of memories, as JSON of at most 8,192 bytes. "+filter.Grammar, &huma.Schema{Type: huma.TypeString},
		`{"tags":"travel","metadata.confidence":{"gte":0.5}}`)
}

func bucketParam(name, description string) *huma.Param {
	return param(name, description, bucketID{}.Schema(nil), 12)
}
