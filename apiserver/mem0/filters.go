package mem0

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
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

// object is an object of conditions in the grammar of mem0.
type object struct {
	path    string // in the request; "" if the members are fields of the request
	members map[string]any
}

// name returns the name of the object in errors.
func (o object) name() string {
	return cmp.Or(o.path, strings.Join(slices.Sorted(maps.Keys(o.members)), ", "))
}

// selectBy returns the selection of objects that must all be true. With an application key,
// they must select exactly one user, unless its header does.
func selectBy(r Request, objects ...object) (selection, error) {
	var out selection
	var problems fault.Fields
	for _, o := range objects {
		if r.Who.Application != nil {
			if user, ok := takeUser(o.members); ok {
				if out.user != "" && out.user != user {
					return selection{}, errOneUser
				}
				out.user = user
			}
		}
		if len(o.members) == 0 {
			continue
		}
		where, err := translate(&problems, o, r.Who.Application == nil)
		if err != nil {
			return selection{}, err
		}
		out.where = and(out.where, where)
	}
	return out, problems.Err()
}

// translate returns the filter of an object, in which user_id may be an attribute. It adds
// the problems to f, each with its path in the request.
func translate(f *fault.Fields, o object, user bool) (filter.Filter, error) {
	t := translator{f: f, user: user, paths: map[string]string{root: o.name()}}
	raw, err := json.Marshal(t.object(o.path, root, o.members))
	if err != nil {
		return filter.Filter{}, err
	}
	var problems fault.Fields
	where := filter.Parse(&problems, root, raw)
	if invalid, ok := errors.AsType[*fault.Error](problems.Err()); ok {
		for _, p := range invalid.Fields {
			f.Add(t.rename(p.Name), "%s", p.Problem)
		}
	}
	return where, nil
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
	if len(raw) > filter.MaxBytes { // translating needs many times the memory
		return nil, fault.New(fault.Invalid, "%s must be at most %d bytes, not %d", field, filter.MaxBytes, len(raw))
	}
	v, err := exactjson.Value(raw)
	object, ok := v.(map[string]any)
	if err != nil || !ok && v != nil {
		return nil, fault.New(fault.Invalid, "%s must be a JSON object", field)
	}
	return object, nil
}

// taken replaces an operand that selected only a user, so that the others keep their indexes.
type taken struct{}

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
		switch {
		case len(nested) == 0 && len(list) == 1:
			delete(object, "AND")
		case len(nested) == 0:
			list[i] = taken{}
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

// root is the path of a translated filter.
const root = "filters"

// translator translates an object to the grammar of internal/filter.
type translator struct {
	f     *fault.Fields
	user  bool              // whether user_id is an attribute
	paths map[string]string // in the request, by those in the translated filter
}

// rename returns the path in the request of a path in the translated filter.
func (t *translator) rename(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if at, ok := t.paths[path[:end]]; ok {
			return at + path[end:]
		}
	}
	return path
}

// object translates an object at a path of the request, which becomes one at the path to.
func (t *translator) object(path, to string, object map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range object {
		at := filter.Path(path, name)
		if path == "" {
			at = name
		}
		field, known := fields[name]
		switch {
		case name == "AND" || name == "OR" || name == "NOT":
			out[name] = t.group(at, filter.Path(to, name), value)
		case name == "metadata":
			t.metadata(at, to, value, out)
		case name == "user_id" && !t.user:
			t.f.Add(at, "must select exactly one user with an application key")
		case known:
			t.paths[filter.Path(to, field)] = at
			out[field] = t.condition(at, value, name == "created_at" || name == "updated_at")
		default:
			t.f.Add(at, "is not supported; the filters are user_id, agent_id, app_id, run_id, metadata, created_at, updated_at, AND, OR and NOT")
		}
	}
	return out
}

// group translates the operands of AND, OR or NOT. filter.Parse reports another type.
func (t *translator) group(path, to string, value any) any {
	switch v := value.(type) {
	case map[string]any: // of NOT: a list of one operand
		t.paths[to+"[0]"] = path
		return t.object(path, to+"[0]", v)
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			at, becomes := fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s[%d]", to, len(out))
			t.paths[becomes] = at
			switch operand := item.(type) {
			case taken:
			case map[string]any:
				out = append(out, t.object(at, becomes, operand))
			default:
				out = append(out, item)
			}
		}
		return out
	}
	return value
}

// metadata translates an object of conditions on members of the metadata.
func (t *translator) metadata(path, to string, value any, out map[string]any) {
	members, ok := value.(map[string]any)
	if !ok {
		t.f.Add(path, "must be an object of conditions")
		return
	}
	for name, value := range members {
		if name == memory.KeyUser || name == memory.KeyApp { // would replace the condition on the field
			t.f.Add(filter.Path(path, name), "must be the filter %s instead", name)
			continue
		}
		key := "metadata." + name
		t.paths[filter.Path(to, key)] = filter.Path(path, name)
		out[key] = t.condition(filter.Path(path, name), value, false)
	}
}

// condition translates a condition on a field, which may be a time: a wildcard or null is
// about its presence.
func (t *translator) condition(path string, value any, isTime bool) any {
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
			before, twice := out["exists"]
			operator(out, op, operand, isTime)
			if twice && out["exists"] != before {
				t.f.Add(path, "must not require both a value and its absence")
			}
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
