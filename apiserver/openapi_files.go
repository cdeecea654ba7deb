package apiserver

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
)

// metaAlso has the other successes of a route.
const metaAlso = "also"

// fileAnswer documents an answer that is a file.
func fileAnswer(mediaType string) map[string]*huma.Response {
	return map[string]*huma.Response{strconv.Itoa(http.StatusOK): {
		Description: "The file, in chunks.",
		Content:     map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		Headers: map[string]*huma.Param{fiber.HeaderContentDisposition: {
			Description: "A name for the file.", Schema: &huma.Schema{Type: huma.TypeString},
		}},
	}}
}

// addSuccesses documents the other successes of a route, whose bodies are those
// of status 200.
func addSuccesses(op *huma.Operation) {
	also, _ := op.Metadata[metaAlso].(map[int]string)
	for status, description := range also {
		content := maps.Clone(op.Responses[strconv.Itoa(http.StatusOK)].Content)
		for mediaType, media := range content {
			another := *media
			content[mediaType] = &another
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: description, Content: content}
	}
}

// eventSchema documents one event of a stream.
func eventSchema() *huma.Schema {
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	return &huma.Schema{Type: huma.TypeObject, Description: "One event.", Required: []string{"id", "data"}, Properties: map[string]*huma.Schema{
		"id": text("For Last-Event-ID."), "data": text("JSON."),
	}}
}

// eventOf reads an event as it is sent.
func eventOf(text string) map[string]any {
	event := map[string]any{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			event[name] = value
		}
	}
	return event
}
