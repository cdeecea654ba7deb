package mem0

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// rejectUnsupported returns an error for options of the body that are set although they are not
// supported. Unknown options are ignored, like everywhere in the API.
func rejectUnsupported(body []byte, reasons map[string]string) error {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(body, &given) // Decode reports the error
	var problems fault.Fields
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		switch string(given[name]) {
		case "", "null", "false", "[]", "{}":
		default:
			problems.Add(name, "%s", reasons[name])
		}
	}
	return problems.Err()
}

// number parses a number from a query, or returns the default. Numbers out of range become
// the largest int32.
func number(f *fault.Fields, query url.Values, name string, unset, least int) int {
	raw := query.Get(name)
	if raw == "" {
		return unset
	}
	n, err := strconv.ParseInt(raw, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0:
		return math.MaxInt32
	case err != nil || n < int64(least):
		f.Add(name, "must be an integer of at least %d", least)
		return unset
	}
	return int(n)
}

// flag reports whether a parameter of a query is true.
func flag(query url.Values, name string) bool {
	set, err := strconv.ParseBool(query.Get(name))
	return err == nil && set
}

// firstOf returns the first of joined errors.
func firstOf(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 0 {
		return all.Unwrap()[0]
	}
	return err
}
