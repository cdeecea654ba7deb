package apiserver

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
)

// metaSuccesses holds the further success statuses of a route.
const metaSuccesses = "successes"

// fileResponse documents a response that is a file.
func fileResponse(mediaType string) map[string]*huma.Response {
	return map[string]*huma.Response{strconv.Itoa(http.StatusOK): {
		Description: "The file, with chunked encoding.",
		Content:     map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		Headers: map[string]*huma.Param{fiber.HeaderContentDisposition: {
			Description: "The suggested file name.", Schema: &huma.Schema{Type: huma.TypeString},
		}},
	}}
}

// addSuccesses documents the further success statuses of a route, with the body
// of status 200.
func addSuccesses(op *huma.Operation) {
	successes, _ := op.Metadata[metaSuccesses].(map[int]string)
	for status, description := range successes {
		content := maps.Clone(op.Responses[strconv.Itoa(http.StatusOK)].Content)
		for mediaType, media := range content {
			another := *media
			content[mediaType] = &another
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: description, Content: content}
	}
}

// eventSchema returns the schema of a server-sent event.
func eventSchema() *huma.Schema {
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	return &huma.Schema{Type: huma.TypeObject, Description: "One event.", Required: []string{"id", "data"}, Properties: map[string]*huma.Schema{
		"id": text("The value for Last-Event-ID."), "data": text("The event as JSON."),
	}}
}

// eventOf parses a server-sent event.
func eventOf(text string) map[string]any {
	event := map[string]any{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			event[name] = value
		}
	}
	return event
}
