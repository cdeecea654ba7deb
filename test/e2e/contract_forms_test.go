package e2e_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// The OpenAPI document describes what clients should send, in the types that code
// generators support. The server accepts more forms and has rules across
// properties. schemathesis checks that the server accepts exactly what a document
// describes, so it gets a document with these differences.

// conditions are rules across properties, by schema.
const conditions = `{
	"IngestRequest": {"not":{"required":["platform"],"properties":{"platform":{"enum":["all"]}}}},
	"UpdateConversationsRequest": {"anyOf":[
		{"required":["excluded"],"properties":{"excluded":{"type":"boolean"}}},
		{"required":["pinned"],"properties":{"pinned":{"type":"boolean"}}}]},
	"UpdateBucketRequest": {"anyOf":[
		{"required":["name"],"properties":{"name":{"type":"string"}}},
		{"required":["description"],"properties":{"description":{"type":"string"}}}]},
	"UpdateMemoryRequest": {"allOf":[
		{"anyOf":[
			{"required":["memoryId"],"properties":{"memoryId":{"type":"string"},"memoryIds":{"type":"null"}}},
			{"required":["memoryIds"],"properties":{"memoryIds":{"type":"array"},"memoryId":{"type":"null"},"text":{"type":"null"},
				"agentId":{"type":"null"},"runId":{"type":"null"},"tags":{"type":"null"}}}]},
		{"anyOf":[
			{"required":["text"],"properties":{"text":{"type":"string"}}},
			{"required":["agentId"],"properties":{"agentId":{"type":"string"}}},
			{"required":["runId"],"properties":{"runId":{"type":"string"}}},
			{"required":["tags"],"properties":{"tags":{"type":"array"}}},
			{"required":["bucketId"],"properties":{"bucketId":{"type":["integer","string"]}}},
			{"required":["bucketName"],"properties":{"bucketName":{"type":"string","minLength":1}}}]}]},
	"RecallRequest": {"anyOf":[
		{"required":["query"],"properties":{"query":{"type":"string","minLength":1},"queries":{"type":["array","null"],"maxItems":0}}},
		{"required":["queries"],"properties":{"queries":{"type":"array","minItems":1},"query":{"type":["string","null"],"maxLength":0}}}]}
}`

// properties are the accepted forms of properties and parameters, by name.
const properties = `{
	"bucketId": {"oneOf":[{"type":"integer"},{"type":"string","pattern":"^-?\\d+$"},{"type":"null"}]},
	"dateFrom": {"anyOf":[{"type":["string","null"],"format":"date"},{"type":["string","null"],"format":"date-time"},{"type":"string","maxLength":0}]},
	"file": {"minLength":1}
}`

// booleanText is the form of a boolean parameter. An empty one counts as absent.
const booleanText = `^([01]|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])?$`

// undescribed are properties and parameters whose rules a schema cannot describe: limits
// in bytes of JSON, a grammar, the name of a time zone, and a time in the future. TestInvalidFilters, TestInvalidAttributes, FuzzParse and
// TestCreateTokenRefusals test them.
var undescribed = []string{"customMetadata", "filter", "expiresAt", "timeZone"}

type object = map[string]any

// accepted returns the document with every form that the server accepts.
func accepted(t *testing.T, raw []byte) []byte {
	t.Helper()
	var document, conditional, forms object
	for text, into := range map[string]*object{string(raw): &document, conditions: &conditional, properties: &forms} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dateTo", "before", "after", "asOf"} {
		forms[name] = forms["dateFrom"]
	}
	schemas := document["components"].(object)["schemas"].(object)
	for name, condition := range conditional {
		maps.Copy(schemas[name].(object), condition.(object))
	}
	for _, item := range document["paths"].(object) {
		for _, op := range item.(object) {
			parameters, _ := op.(object)["parameters"].([]any)
			parameters = slices.DeleteFunc(parameters, func(p any) bool { return slices.Contains(undescribed, p.(object)["name"].(string)) })
			if parameters != nil {
				op.(object)["parameters"] = parameters
			}
			for _, p := range parameters {
				acceptParameter(p.(object), forms)
			}
			body, _ := op.(object)["requestBody"].(object)
			content, _ := body["content"].(object)
			if media, ok := content["application/json"].(object); ok {
				acceptBody(media["schema"].(object), schemas, forms)
			}
			if media, ok := content["multipart/form-data"].(object); ok {
				schema := media["schema"].(object)
				schema["propertyNames"] = object{"pattern": "^[A-Za-z0-9_.-]{1,100}$"}
				// A form may have only files.
				delete(schema, "required")
				schema["anyOf"] = []object{{"required": []string{"file"}}, {"required": []string{"files"}}}
				fields := schema["properties"].(object)
				fields["files"].(object)["minItems"] = 1
				maps.Copy(fields["file"].(object), forms["file"].(object))
				maps.Copy(fields["files"].(object)["items"].(object), forms["file"].(object))
			}
		}
	}
	out, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// acceptParameter adds the empty string, which counts as absent, to the type of a
// query parameter.
func acceptParameter(p, forms object) {
	schema, _ := p["schema"].(object)
	if p["in"] != "query" {
		return
	}
	switch schema["type"] {
	case "integer":
		delete(schema, "format")
		schema["type"], schema["maxLength"] = []string{"integer", "string"}, 0
	case "boolean":
		schema["type"], schema["pattern"] = []string{"boolean", "string"}, booleanText
	case "string":
		form, _ := forms[p["name"].(string)].(object)
		maps.Copy(schema, form)
	}
}

// acceptBody adds the accepted forms of properties to a body. Null counts as absent.
func acceptBody(schema, schemas, forms object) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = schemas[ref[len("#/components/schemas/"):]].(object)
	}
	required, _ := schema["required"].([]any)
	members, _ := schema["properties"].(object)
	for _, name := range undescribed {
		delete(members, name)
	}
	for name, member := range members {
		p := member.(object)
		kind, plain := p["type"].(string)
		if plain && !slices.Contains(required, any(name)) {
			p["type"] = []string{kind, "null"}
		}
		if form, ok := forms[name].(object); ok {
			delete(p, "type")
			delete(p, "format")
			maps.Copy(p, form)
		}
		acceptBody(p, schemas, forms)
	}
	if items, ok := schema["items"].(object); ok {
		acceptBody(items, schemas, forms)
	}
}
