package mem0

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

// fields maps the fields of filters to those of internal/filter.
var fields = map[string]string{
	"user_id": "metadata." + memory.KeyUser, "app_id": "metadata." + memory.KeyApp, "agent_id": "agentId", "run_id": "runId",
	"created_at": "createdAt", "updated_at": "updatedAt",
}

// wildcard matches every value that is present.
const wildcard = "*"

// selection is what a request selects.
type selection struct {
	user  string // with an application key: the user whose memories are selected
	where filter.Filter
}

// selectBy returns the selection of filters that must all be true: objects in the grammar
// of mem0. With an application key, they must select exactly one user, unless its header
// does.
func selectBy(r Request, objects ...map[string]any) (selection, error) {
	var out selection
	t := translator{user: r.Who.Application == nil}
	for _, object := range objects {
		if r.Who.Application != nil {
			if user, ok := takeUser(object); ok {
				if out.user != "" && out.user != user {
					return selection{}, errOneUser
				}
				out.user = user
			}
		}
		if len(object) == 0 {
			continue
		}
		raw, err := json.Marshal(t.object("filters", object))
		if err != nil {
			return selection{}, err
		}
		out.where = and(out.where, filter.Parse(&t.problems, "filters", raw))
	}
	return out, t.problems.Err()
}

var errOneUser = fault.New(fault.Invalid, "filters must select exactly one user_id with an application key")

// and combines two filters, of which either may be zero.
func and(a, b filter.Filter) filter.Filter {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	return filter.Filter{Op: filter.And, Operands: []filter.Filter{a, b}}
}

// parseObject parses the JSON object of a field, keeping numbers as they are.
func parseObject(field string, raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, fault.New(fault.Invalid, "%s must be a JSON object", field)
	}
	return object, nil
}

// takeUser removes the condition that selects one user from conditions that must all be
// true, and returns the user.
func takeUser(object map[string]any) (user string, ok bool) {
	if user, ok = single(object["user_id"]); ok {
		delete(object, "user_id")
		return user, true
	}
	list, _ := object["AND"].([]any)
	for i, item := range list {
		nested, isObject := item.(map[string]any)
		if !isObject {
			continue
		}
		if user, ok = takeUser(nested); !ok {
			continue
		}
		if len(nested) == 0 {
			list = append(list[:i:i], list[i+1:]...)
		}
		if object["AND"] = list; len(list) == 0 {
			delete(object, "AND")
		}
		return user, true
	}
	return "", false
}

// single returns the value of a condition that only one value meets.
func single(condition any) (string, bool) {
	switch c := condition.(type) {
	case string:
		return c, c != "" && c != wildcard
	case map[string]any:
		if list, ok := c["in"].([]any); ok && len(c) == 1 && len(list) == 1 {
			return single(list[0])
		}
		if value, ok := c["eq"]; ok && len(c) == 1 {
			return single(value)
		}
	}
	return "", false
}

// translator translates filters to the grammar of internal/filter.
type translator struct {
	user     bool // whether user_id is an attribute
	problems fault.Fields
}

func (t *translator) object(path string, object map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range object {
		at := path + "." + name
		to, known := fields[name]
		switch {
		case name == "AND" || name == "OR" || name == "NOT":
			out[name] = t.group(at, value)
		case name == "metadata":
			t.metadata(at, value, out)
		case name == "user_id" && !t.user:
			t.problems.Add(at, "must select exactly one user with an application key")
		case known:
			out[to] = condition(value, name == "created_at" || name == "updated_at")
		default:
			t.problems.Add(at, "is not supported; the filters are user_id, agent_id, app_id, run_id, metadata, created_at, updated_at, AND, OR and NOT")
		}
	}
	return out
}

// group translates the operands of AND, OR or NOT. filter.Parse reports another type.
func (t *translator) group(path string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return t.object(path, v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = t.group(fmt.Sprintf("%s[%d]", path, i), item)
		}
		return out
	}
	return value
}

// metadata translates an object of conditions on members of the metadata.
func (t *translator) metadata(path string, value any, out map[string]any) {
	members, ok := value.(map[string]any)
	if !ok {
		t.problems.Add(path, "must be an object of conditions")
		return
	}
	for name, value := range members {
		out["metadata."+name] = condition(value, false)
	}
}

// condition translates a condition on a field, which may be a time: a wildcard or null is
// about its presence.
func condition(value any, isTime bool) any {
	switch v := value.(type) {
	case nil:
		return map[string]any{"exists": false}
	case string:
		if v == wildcard {
			return map[string]any{"exists": true}
		}
		return inUTC(v, isTime)
	case map[string]any:
		out := map[string]any{}
		for op, operand := range v {
			operator(out, op, operand, isTime)
		}
		return out
	}
	return value
}

// operator adds the translation of an operator to out.
func operator(out map[string]any, op string, operand any, isTime bool) {
	anything := operand == nil || operand == wildcard
	if list, ok := operand.([]any); ok && op == "in" {
		for _, item := range list {
			anything = anything || item == wildcard
		}
	}
	switch {
	case anything && (op == "eq" || op == "in"):
		out["exists"] = operand != nil
	case anything && op == "ne":
		out["exists"] = operand == nil
	default:
		if text, ok := operand.(string); ok {
			operand = inUTC(text, isTime)
		}
		out[op] = operand
	}
}

// inUTC adds the zone to a time without one, as clients in Python send it.
func inUTC(text string, isTime bool) string {
	if !isTime {
		return text
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(time.RFC3339Nano)
		}
	}
	return text
}
