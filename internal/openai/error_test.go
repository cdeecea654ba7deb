package openai

import (
	"strings"
	"testing"
)

// The message of an error is found in the forms of common endpoints.
func TestStatusErrorMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"OpenAI":            {`{"error":{"message":"maximum context length exceeded","code":"x"}}`, "maximum context length exceeded"},
		"TEI":               {`{"error":"batch size 40 > maximum allowed batch size 32","error_type":"Validation"}`, "batch size 40 > maximum allowed batch size 32"},
		"Cohere":            {`{"id":"1","message":"invalid api token"}`, "invalid api token"},
		"Jina":              {`{"detail":"model not found"}`, "model not found"},
		"detail object":     {`{"detail":{"message":"no balance"}}`, "no balance"},
		"list, with inputs": {`{"detail":[{"loc":["body","query"],"msg":"too long","input":"secret question"}]}`, ""},
		"error is null":     {`{"error":null,"message":"overloaded"}`, "overloaded"},
		"number":            {`{"error":5}`, ""},
		"not an object":     {`["error"]`, ""},
		"not JSON":          {`<html>Bad Gateway</html>`, ""},
		"key":               {`{"error":"invalid key sk-1"}`, "invalid key (key)"},
		"key in detail":     {`{"detail":"invalid key sk-1"}`, "invalid key (key)"},
		"long":              {`{"message":"` + strings.Repeat("ä", 500) + `"}`, strings.Repeat("ä", 100) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := newStatusError(400, []byte(tc.body), "sk-1").Message; got != tc.want {
				t.Errorf("message %q, want %q", got, tc.want)
			}
		})
	}
}
