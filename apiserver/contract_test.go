package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
)

var contractTable = flag.String("contract", "", "file to write the table of routes and statuses to, with the test that saw each, as Markdown")

// TestMain checks that every response documented in api/openapi.json occurred in
// at least one test.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && everythingRan() {
		code = theContract().report()
	}
	if *contractTable != "" {
		if err := os.WriteFile(*contractTable, []byte(theContract().table()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// everythingRan reports whether all tests were selected.
func everythingRan() bool {
	return !slices.ContainsFunc([]string{"test.run", "test.skip", "test.list"}, func(name string) bool {
		return flag.Lookup(name).Value.String() != ""
	})
}

// contract is api/openapi.json and the responses that occurred in tests.
type contract struct {
	file   map[string]any
	routes []contractRoute

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by where they are in the file
	seen     map[contractAnswer][]string   // the tests
}

type contractRoute struct {
	method, pattern string
	form            *regexp.Regexp
}

// pointer returns the JSON pointer of the route.
func (r contractRoute) pointer() []string {
	return []string{"paths", r.pattern, strings.ToLower(r.method)}
}

type contractAnswer struct {
	method, pattern string
	status          int
}

var theContract = sync.OnceValue(readContract)

func readContract() *contract {
	raw, err := os.ReadFile(committed)
	if err != nil {
		panic(err)
	}
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	tighten(file)
	c := &contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, seen: map[contractAnswer][]string{}}
	c.compiler.AssertFormat()
	c.compiler.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		return regexp.Compile(escapedRune.ReplaceAllString(s, `\x{$1}`)) // as Go writes it
	})
	if err := c.compiler.AddResource("openapi.json", file); err != nil {
		panic(err)
	}
	c.file, _ = file.(map[string]any)
	paths, _ := c.file["paths"].(map[string]any)
	for pattern, item := range paths {
		form := regexp.MustCompile("^" + pathParameter.ReplaceAllString(pattern, "[^/]+") + "$")
		methods, _ := item.(map[string]any)
		for method := range methods {
			c.routes = append(c.routes, contractRoute{strings.ToUpper(method), pattern, form})
		}
	}
	slices.SortFunc(c.routes, func(a, b contractRoute) int {
		return strings.Compare(a.pattern+" "+a.method, b.pattern+" "+b.method)
	})
	return c
}

// tighten disallows additional properties in every object schema: clients must
// accept them, but the server must not send undocumented properties.
func tighten(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, named := node["properties"].(map[string]any); named && node["type"] == "object" {
			node["additionalProperties"] = false
		}
		for _, inner := range node {
			tighten(inner)
		}
	case []any:
		for _, inner := range node {
			tighten(inner)
		}
	}
}

var escapedRune = regexp.MustCompile(`\\u([0-9a-f]{4})`)

var pathParameter = regexp.MustCompile(`\{[^}]+\}`)

// route returns the route of a request, whose path may have a query.
func (c *contract) route(method, path string) (contractRoute, bool) {
	path, _, _ = strings.Cut(path, "?")
	i := slices.IndexFunc(c.routes, func(r contractRoute) bool { return r.method == method && r.form.MatchString(path) })
	if i < 0 {
		return contractRoute{}, false
	}
	return c.routes[i], true
}

// at returns an object and its pointer after following references.
func (c *contract) at(pointer ...string) (map[string]any, []string) {
	node := c.file
	for i := range pointer {
		node, _ = node[pointer[i]].(map[string]any)
		if ref, ok := node["$ref"].(string); ok {
			return c.at(append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), pointer[i+1:]...)...)
		}
	}
	return node, pointer
}

// check validates a value against the schema at the pointer.
func (c *contract) check(v any, pointer ...string) error {
	tokens := make([]string, len(pointer))
	for i, token := range pointer {
		tokens[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	location := "openapi.json#/" + strings.Join(tokens, "/")
	c.mu.Lock()
	schema := c.schemas[location]
	if schema == nil {
		var err error
		if schema, err = c.compiler.Compile(location); err != nil {
			c.mu.Unlock()
			return err
		}
		c.schemas[location] = schema
	}
	c.mu.Unlock()
	return schema.Validate(v)
}

// see validates a response against the contract and records the test. Paths
// outside of the contract are ignored.
func (c *contract) see(t *testing.T, method, path string, got answer) {
	t.Helper()
	route, ok := c.route(method, path)
	if !ok {
		return
	}
	response, where := c.at(append(route.pointer(), "responses", strconv.Itoa(got.status))...)
	if response == nil {
		t.Errorf("%s %s: status %d is not in the contract: %.300s", method, path, got.status, got.body)
		return
	}
	c.mu.Lock()
	key := contractAnswer{method, route.pattern, got.status}
	if !slices.Contains(c.seen[key], t.Name()) {
		c.seen[key] = append(c.seen[key], t.Name())
	}
	c.mu.Unlock()
	for _, complaint := range append(c.bodyComplaints(where, got), c.headerComplaints(where, got)...) {
		t.Errorf("%s %.300s: %d %.300s: %s", method, path, got.status, got.body, complaint)
	}
}

// seeRaw is see for a raw response.
func (c *contract) seeRaw(t *testing.T, method, path, said string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(said)), nil)
	if err != nil {
		t.Fatalf("answer %q: %v", said, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("answer %q: %v", said, err)
	}
	c.see(t, method, path, answer{status: response.StatusCode, header: response.Header, body: string(body)})
}

// bodyComplaints returns the differences between a body and its documentation.
func (c *contract) bodyComplaints(response []string, got answer) []string {
	content, _ := c.at(append(response, "content")...)
	if len(content) == 0 && got.body == "" {
		return nil
	}
	kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	if content[kind] == nil {
		return []string{fmt.Sprintf("its Content-Type %q is not in the contract", kind)}
	}
	if kind != "application/json" {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
	if err == nil {
		err = c.check(v, append(response, "content", kind, "schema")...)
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// headerComplaints returns missing, invalid and undocumented headers.
func (c *contract) headerComplaints(response []string, got answer) []string {
	var out []string
	documented, _ := c.at(append(response, "headers")...)
	for name := range documented {
		header, where := c.at(append(response, "headers", name)...)
		text := got.header.Get(name)
		switch {
		case text == "" && mustHave(name, got.status):
			out = append(out, "it lacks the header "+name)
			continue
		case text == "":
			continue
		}
		var v any = text
		if schema, _ := header["schema"].(map[string]any); schema["type"] == "integer" {
			v = json.Number(text)
		}
		if err := c.check(v, append(where, "schema")...); err != nil {
			out = append(out, name+": "+err.Error())
		}
	}
	for name := range got.header {
		ours := strings.HasPrefix(name, "X-") && name != "X-Accel-Buffering" || strings.HasPrefix(name, "Ratelimit-") || name == "Location" || name == "Retry-After" || name == "Www-Authenticate"
		known := func(other string) bool { return http.CanonicalHeaderKey(other) == name }
		if ours && !slices.ContainsFunc(slices.Collect(maps.Keys(documented)), known) {
			out = append(out, "its header "+name+" is not in the contract")
		}
	}
	return out
}

// mustHave reports whether a response with the status always has the header. The
// RateLimit headers are set once a request was counted.
func mustHave(header string, status int) bool {
	switch header {
	case httpx.HeaderRateLimit, httpx.HeaderRateRemaining, httpx.HeaderRateReset:
		return status != http.StatusForbidden && status != http.StatusRequestTimeout && status < http.StatusInternalServerError
	case headerDegraded, headerImport:
		return false
	}
	return true
}

// report prints the responses that did not occur and returns the exit code.
func (c *contract) report() int {
	missing := 0
	for _, r := range c.routes {
		for _, status := range c.statuses(r) {
			if len(c.seen[contractAnswer{r.method, r.pattern, status}]) == 0 {
				missing++
				fmt.Printf("api/openapi.json documents %s %s with status %d, and no test has seen it: write one, or take it out\n", r.method, r.pattern, status)
			}
		}
	}
	return min(missing, 1)
}

// statuses returns the documented statuses of a route.
func (c *contract) statuses(r contractRoute) []int {
	responses, _ := c.at(append(r.pointer(), "responses")...)
	var out []int
	for text := range responses {
		status, err := strconv.Atoi(text)
		if err != nil {
			panic(text + " of " + r.pattern + " is no status")
		}
		out = append(out, status)
	}
	slices.Sort(out)
	return out
}

// table lists every route and status with a test.
func (c *contract) table() string {
	var all []int
	for _, r := range c.routes {
		all = append(all, c.statuses(r)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	var b strings.Builder
	b.WriteString("| route |")
	for _, status := range all {
		fmt.Fprintf(&b, " %d |", status)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	for _, r := range c.routes {
		fmt.Fprintf(&b, "| %s %s |", r.method, r.pattern)
		documented := c.statuses(r)
		for _, status := range all {
			cell := ""
			if tests := c.seen[contractAnswer{r.method, r.pattern, status}]; len(tests) > 0 {
				cell = slices.Min(tests)
			} else if slices.Contains(documented, status) {
				cell = "**none**"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The contract check detects undocumented responses.
func TestContractDetectsDifferences(t *testing.T) {
	t.Parallel()
	c := theContract()
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r"}}
	for _, name := range rateHeaders {
		header.Set(name, "1")
	}
	good := answer{status: 200, header: header, body: `{"count":1}`}
	for name, tc := range map[string]struct {
		change func(*answer)
		says   string
	}{
		"Fine":          {func(*answer) {}, ""},
		"WrongType":     {func(a *answer) { a.body = `{"count":"1"}` }, "want integer"},
		"Missing":       {func(a *answer) { a.body = `{}` }, "missing property 'count'"},
		"NotJSON":       {func(a *answer) { a.body = `{` }, "unexpected EOF"},
		"ContentType":   {func(a *answer) { a.header.Set("Content-Type", "text/plain") }, `Content-Type "text/plain"`},
		"HeaderMissing": {func(a *answer) { a.header.Del("X-Request-Id") }, "lacks the header X-Request-Id"},
		"HeaderWrong":   {func(a *answer) { a.header.Set("RateLimit-Limit", "many") }, "RateLimit-Limit"},
		"HeaderOfOurs":  {func(a *answer) { a.header.Set("X-Surprise", "1") }, "X-Surprise is not in the contract"},
	} {
		got := answer{status: good.status, header: good.header.Clone(), body: good.body}
		tc.change(&got)
		_, where := c.at("paths", "/api/chat-history/count", "get", "responses", "200")
		complaints := strings.Join(append(c.bodyComplaints(where, got), c.headerComplaints(where, got)...), "; ")
		if (complaints == "") != (tc.says == "") || !strings.Contains(complaints, tc.says) {
			t.Errorf("%s: complaints %q, want one saying %q", name, complaints, tc.says)
		}
	}
}
