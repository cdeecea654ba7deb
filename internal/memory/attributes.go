package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// Limits of the attributes of a memory.
const (
	MaxMetadata      = 4096 // bytes of the encoded object
	maxMetadataDepth = 8
	MaxAgentID       = 256 // bytes, also of RunID
	MaxTags          = 32
	MaxTag           = 64 // characters
)

// Attributes describe a memory. Filters select memories by them.
type Attributes struct {
	AgentID string // the assistant that stored it; "" for none
	RunID   string // the session or run in which it was stored; "" for none
	Tags    []string
	// Metadata is a JSON object, nil if it has no members. Numbers have no exponent.
	Metadata json.RawMessage
}

// Equal reports whether a and b, both of Normalize, are the same.
func (a Attributes) Equal(b Attributes) bool {
	return a.AgentID == b.AgentID && a.RunID == b.RunID && slices.Equal(a.Tags, b.Tags) && bytes.Equal(a.Metadata, b.Metadata)
}

// The members of the metadata that Groups counts.
const (
	KeyUser = "user_id" // the person whom the memory is about
	KeyApp  = "app_id"
)

// Subject returns the person whom the memory is about, if the account stores memories about
// several: the member user_id of the metadata, as JSON. It is "" if there is none.
func (a Attributes) Subject() string {
	var members map[string]json.RawMessage
	if len(a.Metadata) == 0 || json.Unmarshal(a.Metadata, &members) != nil {
		return ""
	}
	return string(members[KeyUser])
}

// Size is the number of bytes that count toward the storage quota.
func (a Attributes) Size() int {
	n := len(a.AgentID) + len(a.RunID) + len(a.Metadata)
	for _, t := range a.Tags {
		n += len(t)
	}
	return n
}

// Normalize returns the attributes as they are stored: tags sorted and without
// duplicates, metadata in canonical form. It adds the problems to f.
func (a Attributes) Normalize(f *fault.Fields) Attributes {
	a.AgentID, a.RunID = reference(f, "agent id", a.AgentID), reference(f, "run id", a.RunID)
	a.Tags = normalizeTags(f, a.Tags)
	a.Metadata = normalizeMetadata(f, a.Metadata)
	return a
}

// reference checks an id that the caller chose.
func reference(f *fault.Fields, field, id string) string {
	if len(id) > MaxAgentID {
		f.Add(field, "must be at most %d bytes, not %d", MaxAgentID, len(id))
	}
	checkString(f, field, id)
	return id
}

func normalizeTags(f *fault.Fields, tags []string) []string {
	if len(tags) > MaxTags {
		f.Add("tags", "must contain at most %d tags, not %d", MaxTags, len(tags))
		return nil
	}
	for i, t := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		if textrule.IsBlank(t) || utf8.RuneCountInString(t) > MaxTag {
			f.Add(field, "must be 1 to %d characters and not blank", MaxTag)
		}
		checkString(f, field, t)
	}
	if len(tags) == 0 {
		return nil
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return slices.Compact(tags)
}

// normalizeMetadata returns the canonical form of a JSON object.
func normalizeMetadata(f *fault.Fields, raw json.RawMessage) json.RawMessage {
	// Larger input may fit after whitespace is removed, but is not parsed.
	if len(raw) > 16*MaxMetadata {
		f.Add("metadata", "must be at most %d bytes of JSON, not %d", MaxMetadata, len(raw))
		return nil
	}
	out, err := CanonicalMetadata(raw)
	if invalid, ok := errors.AsType[*memberError](err); ok {
		f.Add(invalid.path, "%s", invalid.problem)
	} else if len(out) > MaxMetadata {
		f.Add("metadata", "must be at most %d bytes of JSON, not %d", MaxMetadata, len(out))
	}
	return out
}

// memberError is the reason why metadata, or a member of it, is invalid.
type memberError struct{ path, problem string }

// Error returns the path and the problem.
func (e *memberError) Error() string { return e.path + " " + e.problem }

// in returns e with a path that begins at parent.
func (e *memberError) in(parent string) *memberError { return &memberError{parent + e.path, e.problem} }

var errNoObject = &memberError{"metadata", "must be a JSON object"}

// CanonicalMetadata returns a JSON object without whitespace, with sorted keys and with
// numbers without an exponent; nil if it has no members. The error names the invalid
// member.
func CanonicalMetadata(raw []byte) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return nil, nil
	}
	if !utf8.Valid(raw) {
		return nil, errNoObject
	}
	v, err := exactjson.Value(raw)
	switch {
	case fault.Is(err, fault.Invalid):
		return nil, &memberError{"metadata", "must not contain a member twice"}
	case err != nil:
		return nil, errNoObject
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	if len(object) == 0 {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if key == "" {
			return nil, &memberError{"metadata", "must not have an empty key"}
		}
		if len(key) > filter.MaxKey {
			return nil, &memberError{filter.Path("metadata", key), fmt.Sprintf("must have a key of at most %d bytes", filter.MaxKey)}
		}
	}
	if _, invalid := canonical(object, 1); invalid != nil {
		return nil, invalid.in("metadata")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, errNoObject
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// canonical returns a value with its numbers in decimal notation. It changes lists and
// objects in place. The path of the error begins at the value.
func canonical(v any, depth int) (any, *memberError) {
	if depth > maxMetadataDepth {
		return nil, &memberError{problem: fmt.Sprintf("must not be nested more than %d levels deep", maxMetadataDepth)}
	}
	var invalid *memberError
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return nil, &memberError{problem: "must not contain the character U+0000"}
		}
	case json.Number:
		text, ok := filter.Decimal(v.String())
		if !ok {
			return nil, &memberError{problem: "must be a number of " + filter.NumberLimits}
		}
		return json.Number(text), nil
	case []any:
		for i := range v {
			if v[i], invalid = canonical(v[i], depth+1); invalid != nil {
				return nil, invalid.in(fmt.Sprintf("[%d]", i))
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if strings.ContainsRune(key, 0) {
				return nil, &memberError{problem: "must not have a key that contains the character U+0000"}
			}
			if v[key], invalid = canonical(v[key], depth+1); invalid != nil {
				return nil, invalid.in(filter.Path("", key))
			}
		}
	}
	return v, nil
}

// AttributeChanges changes attributes; nil fields are unchanged. Empty values remove the
// attribute. Metadata and Tags are replaced, not merged.
type AttributeChanges struct {
	AgentID  *string
	RunID    *string
	Tags     *[]string
	Metadata *json.RawMessage
}

// IsZero reports whether nothing changes.
func (c AttributeChanges) IsZero() bool { return c == AttributeChanges{} }

// Normalize returns the changes as they are stored. It adds the problems to f.
func (c AttributeChanges) Normalize(f *fault.Fields) AttributeChanges {
	to := c.Apply(Attributes{}).Normalize(f)
	if c.Tags != nil {
		c.Tags = &to.Tags
	}
	if c.Metadata != nil {
		c.Metadata = &to.Metadata
	}
	return c
}

// Apply returns the attributes after the changes.
func (c AttributeChanges) Apply(to Attributes) Attributes {
	if c.AgentID != nil {
		to.AgentID = *c.AgentID
	}
	if c.RunID != nil {
		to.RunID = *c.RunID
	}
	if c.Tags != nil {
		to.Tags = *c.Tags
	}
	if c.Metadata != nil {
		to.Metadata = *c.Metadata
	}
	return to
}
