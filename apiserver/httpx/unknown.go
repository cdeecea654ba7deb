package httpx

import (
	"context"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
)

const (
	// inspected is how much of a body is searched for unknown fields, bytes.
	inspected = 64 << 10
	// maxWarnings is how many unknown fields, and how many parameters, a response names.
	maxWarnings = 10
	// maxUnknown is how many unknown fields are examined: each costs a scan.
	maxUnknown = 100
	// longestName is the length of a parameter or a field's path in a warning, bytes.
	longestName = 100
)

type beginningKey struct{}

// beginning keeps the first bytes of a body.
type beginning struct {
	io.Reader
	data  []byte
	fiber *fiber.Ctx
}

// Read implements io.Reader.
func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.data = append(b.data, p[:min(n, inspected-len(b.data))]...)
	return n, err
}

// keepBeginning replaces the body by one whose first bytes WarnOfUnknown inspects.
func keepBeginning(ctx huma.Context, body io.Reader) (huma.Context, io.Reader) {
	b := &beginning{Reader: body, fiber: FiberContext(ctx)}
	return huma.WithValue(ctx, beginningKey{}, b), b
}

// WarnOfUnknown names the fields of the request's body that t does not have in
// Warning headers (RFC 7234, code 299). Such fields are ignored, so a misspelled
// optional field would otherwise go unnoticed.
func WarnOfUnknown(ctx context.Context, t reflect.Type) {
	b, ok := ctx.Value(beginningKey{}).(*beginning)
	if !ok {
		return
	}
	addWarnings(b.fiber, "unknown field ", unknownFields(b.data, t))
}

// WarnOfUnknownParameters names the query parameters that the route does not have, as
// WarnOfUnknown does with fields.
func WarnOfUnknownParameters(ctx huma.Context, next func(huma.Context)) {
	c := FiberContext(ctx)
	var names []string
	for key := range c.Context().QueryArgs().All() {
		known := slices.ContainsFunc(ctx.Operation().Parameters, func(p *huma.Param) bool {
			return p.In == "query" && p.Name == string(key)
		})
		if name := shortened(string(key)); !known && len(names) < maxWarnings && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	addWarnings(c, "unknown query parameter ", names)
	next(ctx)
}

func addWarnings(c *fiber.Ctx, prefix string, names []string) {
	for _, name := range names {
		c.Response().Header.Add(fiber.HeaderWarning, "299 - "+strconv.QuoteToASCII(prefix+name))
	}
}

// shortened returns a name, or the beginning of one that exceeds longestName.
func shortened(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "..."
}

// unknownFields returns the paths of the first members of a document, or of its
// beginning, that are ignored when it is decoded into t. Members of the items of a
// list are named once.
func unknownFields(data []byte, t reflect.Type) []string {
	var fields []string
	seen := 0
	walk(data, t, visitor{unknown: func(end int) bool {
		field := shortened(index.ReplaceAllString(exactjson.Path(data, int64(end)), "[]"))
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
		seen++
		return len(fields) < maxWarnings && seen < maxUnknown
	}})
	return fields
}

// index matches the position of an item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// BodyType returns the type of the body of an input, nil if it has none.
func BodyType[I any]() reflect.Type {
	t := reflect.TypeFor[I]()
	if t.Kind() != reflect.Struct {
		return nil
	}
	field, ok := t.FieldByName("Body")
	if !ok {
		return nil
	}
	return field.Type
}
