package filter

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Grammar describes a filter in one sentence, for documentation.
const Grammar = "A filter is an object of conditions that must all be true, such as {\"agentId\": \"planner\", \"metadata.year\": {\"gte\": 2024}}. " +
	"AND, OR and NOT combine lists of filters. Fields: metadata.<key>, agentId, runId, tags, source, bucketId, createdAt, updatedAt. " +
	"Operators: eq, ne, in, gt, gte, lt, lte, contains, exists."

// Parse parses a filter from JSON; empty JSON and null are the zero Filter. It adds the
// problems to f, each with its path below name.
func Parse(f *fault.Fields, name string, raw []byte) Filter {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return Filter{}
	}
	if len(raw) > MaxBytes {
		f.Add(name, "must be at most %d bytes, not %d", MaxBytes, len(raw))
		return Filter{}
	}
	v, err := exactjson.Value(raw)
	if fault.Is(err, fault.Invalid) {
		f.Add(name, "must not contain a member twice")
		return Filter{}
	}
	object, ok := v.(map[string]any)
	if err != nil || !ok || !utf8.Valid(raw) {
		f.Add(name, `must be a JSON object, such as {"metadata.topic": "travel"}`)
		return Filter{}
	}
	p := parser{f: f}
	out := p.object(name, object, 1)
	if p.conditions > MaxConditions {
		f.Add(name, "must have at most %d conditions, not %d", MaxConditions, p.conditions)
	}
	return out
}

// ParseCondition parses the condition that an operator compares a field with a value. Problems
// have the name.
func ParseCondition(f *fault.Fields, name string, field Field, op Op, v any) Filter {
	p := parser{f: f}
	return p.condition(name, Filter{Op: op, Field: field}, v)
}

// Path returns the path of a member in the problems that Parse adds.
func Path(parent, name string) string { return parent + "." + clip(name) }

// parser parses one filter.
type parser struct {
	f          *fault.Fields
	conditions int
}

// object parses the members of an object, which must all be true.
func (p *parser) object(path string, object map[string]any, depth int) Filter {
	var all []Filter
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := Path(path, name)
		switch Op(name) {
		case And, Or, Not:
			all = append(all, p.group(at, Op(name), object[name], depth))
		default:
			all = append(all, p.field(at, name, object[name])...)
		}
	}
	switch len(all) {
	case 0:
		return Filter{}
	case 1:
		return all[0]
	}
	return Filter{Op: And, Operands: all}
}

// group parses the operands of AND, OR or NOT.
func (p *parser) group(path string, op Op, v any, depth int) Filter {
	list, ok := v.([]any)
	if one, isObject := v.(map[string]any); isObject && op == Not {
		list, ok = []any{one}, true
	}
	if !ok || len(list) == 0 {
		p.f.Add(path, "must be a list of one or more filters")
		return Filter{}
	}
	if depth > MaxDepth {
		p.f.Add(path, "must not be nested more than %d levels deep", MaxDepth)
		return Filter{}
	}
	out := Filter{Op: op}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		object, ok := item.(map[string]any)
		if !ok || len(object) == 0 {
			p.f.Add(at, "must be an object with at least one condition")
			continue
		}
		out.Operands = append(out.Operands, p.object(at, object, depth+1))
	}
	return out
}

// field parses the conditions on a field: a value, or an object of operators.
func (p *parser) field(path, name string, v any) []Filter {
	field, key, ok := fieldOf(name)
	if !ok {
		p.f.Add(path, "is not a field; the fields are metadata.<key>, agentId, runId, tags, source, bucketId, createdAt and updatedAt")
		return nil
	}
	if len(key) > MaxKey {
		p.f.Add(path, "must have a key of at most %d bytes", MaxKey)
		return nil
	}
	if strings.ContainsRune(key, 0) {
		p.f.Add(path, "must not contain the character U+0000")
		return nil
	}
	allowed := operators[field]
	object, ok := v.(map[string]any)
	if !ok {
		return []Filter{p.condition(path, Filter{Op: allowed[0], Field: field, Key: key}, v)}
	}
	if len(object) == 0 {
		p.f.Add(path, "must be a value or an object with one of the operators %s", list(allowed))
	}
	var out []Filter
	for _, op := range slices.Sorted(maps.Keys(object)) {
		at := Path(path, op)
		if !slices.Contains(allowed, Op(op)) {
			p.f.Add(at, "is not a valid operator for this field; use one of %s", list(allowed))
			continue
		}
		out = append(out, p.condition(at, Filter{Op: Op(op), Field: field, Key: key}, object[op]))
	}
	return out
}

// fieldOf returns the field of a name, and the key of "metadata.<key>".
func fieldOf(name string) (field Field, key string, ok bool) {
	if key, found := strings.CutPrefix(name, string(Metadata)+"."); found {
		return Metadata, key, key != ""
	}
	_, ok = operators[Field(name)]
	return Field(name), "", ok && Field(name) != Metadata
}

// condition parses the operand of a condition.
func (p *parser) condition(path string, c Filter, v any) Filter {
	p.conditions++
	if c.Op == Exists {
		b, ok := v.(bool)
		if !ok {
			p.f.Add(path, "must be true or false")
		}
		c.Values = []Value{boolean(b)}
		return c
	}
	if c.Op != In {
		c.Values = []Value{p.value(path, c, v)}
		return c
	}
	values, ok := v.([]any)
	if !ok || len(values) == 0 || len(values) > MaxValues {
		p.f.Add(path, "must be a list of 1 to %d values", MaxValues)
		return c
	}
	for i, v := range values {
		c.Values = append(c.Values, p.value(fmt.Sprintf("%s[%d]", path, i), c, v))
	}
	return c
}

func list(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}

// clip shortens a name from the input for a message.
func clip(name string) string {
	const longest = 64
	if utf8.RuneCountInString(name) <= longest {
		return name
	}
	return string([]rune(name)[:longest]) + "…"
}
