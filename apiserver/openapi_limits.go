package apiserver

import (
	"maps"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// This file adds constraints to the OpenAPI document that types and tags do not
// express, so that the document accepts exactly what the server accepts.

// String patterns, in the common subset of regular expression dialects.
const (
	anyText   = `^[^\x00]*$`
	notBlank  = `^[^\x00]*[^\s\x00\x85][^\x00]*$` // as in strings.TrimSpace
	blankNone = `^$|` + notBlank                  // empty counts as absent
	// oneLine is a name: no control characters, and at least one visible non-digit.
	control = `\x00-\x1f\x7f-\x9f\u2028\u2029`
	unseen  = `\s\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff`
	anySeen = `^[^\x00]*[^` + control + unseen + `][^\x00]*$`
	oneLine = `^[^` + control + `]*[^` + control + unseen + `0-9][^` + control + `]*$`
)

// dateOrTime marks a property or parameter that is a date or a time.
const dateOrTime = "a date or a time"

// forms are the patterns of properties, by schema.property.
var forms = map[string]string{
	"CreateMemoryRequest.text": notBlank, "CreateMemoryRequest.source": anyText,
	"UpdateMemoryRequest.text": notBlank, "UpdateMemoryRequest.bucketName": `^$|` + anySeen,
	"CreateBucketRequest.name": oneLine, "CreateBucketRequest.description": anyText,
	"UpdateBucketRequest.name": oneLine, "UpdateBucketRequest.description": anyText,
	"SearchRequest.query": notBlank, "SearchRequest.provider": anyText,
	"SearchRequest.dateFrom": dateOrTime, "SearchRequest.dateTo": dateOrTime,
	"RecallRequest.query": blankNone, "RecallRequest.platform": anyText, "RecallRequest.conversationContext": anyText,
	"RecallRequest.before": dateOrTime, "RecallRequest.after": dateOrTime,
	"RecallQuery.query": notBlank, "RecallTurn.content": anyText,
	"IngestConversation.id": notBlank, "IngestConversation.title": anyText,
	"IngestMessage.id": notBlank, "IngestMessage.content": anyText, "IngestRequest.platformDisplayName": anyText,
}

// conditions are constraints across properties, by schema.
var conditions = map[string]any{
	"UpdateConversationsRequest": example(`{"anyOf":[
		{"required":["excluded"],"properties":{"excluded":{"type":"boolean"}}},
		{"required":["pinned"],"properties":{"pinned":{"type":"boolean"}}}]}`),
	"UpdateBucketRequest": example(`{"anyOf":[
		{"required":["name"],"properties":{"name":{"type":"string"}}},
		{"required":["description"],"properties":{"description":{"type":"string"}}}]}`),
	"UpdateMemoryRequest": example(`{"allOf":[
		{"anyOf":[
			{"required":["memoryId"],"properties":{"memoryId":{"type":"string"},"memoryIds":{"type":"null"}}},
			{"required":["memoryIds"],"properties":{"memoryIds":{"type":"array"},"memoryId":{"type":"null"},"text":{"type":"null"}}}]},
		{"anyOf":[
			{"required":["text"],"properties":{"text":{"type":"string"}}},
			{"required":["bucketId"],"properties":{"bucketId":{"type":["integer","string"]}}},
			{"required":["bucketName"],"properties":{"bucketName":{"type":"string","minLength":1}}}]}]}`),
	"RecallRequest": example(`{"anyOf":[
		{"required":["query"],"properties":{"query":{"type":"string","minLength":1},"queries":{"type":["array","null"],"maxItems":0}}},
		{"required":["queries"],"properties":{"queries":{"type":"array","minItems":1},"query":{"type":["string","null"],"maxLength":0}}}]}`),
	"IngestRequest.platform": example(`{"not":{"enum":["all"]}}`),
}

// fieldNames constrains the field names of a form.
var fieldNames = map[string]any{"propertyNames": map[string]any{"pattern": fieldName.String()}}

var fieldName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// limit adds the constraints of a schema.
func limit(name string, s *huma.Schema) {
	extend(s, conditions[name])
	for property, p := range s.Properties {
		full := name + "." + property
		extend(p, conditions[full])
		if form, ok := forms[full]; ok {
			limitText(p, form)
		}
	}
}

// limitText sets the pattern of a string.
func limitText(s *huma.Schema, form string) {
	if form == dateOrTime {
		extend(s, example(`{"anyOf":[{"type":["string","null"],"format":"date"},{"type":["string","null"],"format":"date-time"},{"type":"string","maxLength":0}]}`))
		return
	}
	s.Pattern = form
	if strings.HasPrefix(form, "^$|") {
		s.MinLength = nil
	}
}

// extend adds keywords to a schema.
func extend(s *huma.Schema, keywords any) {
	if more, ok := keywords.(map[string]any); ok {
		if s.Extensions == nil {
			s.Extensions = map[string]any{}
		}
		maps.Copy(s.Extensions, more)
	}
}
