package apiserver

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// This file adds patterns to the OpenAPI document that types and tags do not
// express. The document describes what clients should send, in the types that
// code generators support; the server accepts more forms (test/e2e/contract_forms_test.go).

// String patterns, in the common subset of regular expression dialects.
const (
	anyText   = `^[^\x00]*$`
	notBlank  = `^[^\x00]*[^` + control + unseen + `][^\x00]*$` // as in textrule.IsBlank
	blankNone = `^$|` + notBlank                                // empty counts as absent
	// lineSeen is a name, as in textrule.NameProblem: at least one character is visible. In oneLine it is no digit.
	control  = `\x00-\x1f\x7f-\x9f\u2028\u2029`
	refused  = control + `\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`
	unseen   = `\s\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff`
	lineSeen = `^[^` + refused + `]*[^` + refused + unseen + `][^` + refused + `]*$`
	oneLine  = `^[^` + refused + `]*[^` + refused + unseen + `0-9][^` + refused + `]*$`
)

// forms are the patterns of properties, or of the items of lists, by schema.property.
var forms = map[string]string{
	"CreateMemoryRequest.text": notBlank, "CreateMemoryRequest.source": anyText,
	"CreateMemoryRequest.agentId": anyText, "CreateMemoryRequest.runId": anyText, "CreateMemoryRequest.tags": notBlank,
	"UpdateMemoryRequest.agentId": anyText, "UpdateMemoryRequest.runId": anyText, "UpdateMemoryRequest.tags": notBlank,
	"UpdateMemoryRequest.text": notBlank, "UpdateMemoryRequest.bucketName": blankNone,
	"CreateBucketRequest.name": oneLine, "CreateBucketRequest.description": anyText,
	"UpdateBucketRequest.name": oneLine, "UpdateBucketRequest.description": anyText,
	"CreateTokenRequest.name": lineSeen,
	"SearchRequest.query":     notBlank, "SearchRequest.provider": anyText,
	"SearchAllRequest.query": notBlank,
	"RecallRequest.query":    blankNone, "RecallRequest.platform": anyText, "RecallRequest.conversationContext": anyText,
	"RecallQuery.query": notBlank, "RecallTurn.content": anyText,
	"IngestConversation.id": notBlank, "IngestConversation.title": anyText,
	"IngestMessage.id": notBlank, "IngestMessage.content": anyText, "IngestRequest.platformDisplayName": anyText,
}

// limit adds the patterns of a schema.
func limit(name string, s *huma.Schema) {
	for property, p := range s.Properties {
		form, ok := forms[name+"."+property]
		if !ok {
			continue
		}
		if p.Items != nil {
			p.Items.Pattern = form
			continue
		}
		p.Pattern = form
		if strings.HasPrefix(form, "^$|") {
			p.MinLength = nil
		}
	}
}
