package apiserver

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// bucketID is a bucket id in a request: an integer, a string that contains one,
// or null for none.
type bucketID struct {
	given string // "" for none
}

// UnmarshalJSON accepts any value; value validates it, because only its caller
// knows the field name.
func (b *bucketID) UnmarshalJSON(data []byte) error {
	b.given = string(data)
	if b.given == "null" {
		b.given = ""
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		b.given = strings.TrimSpace(s)
		if b.given == "" {
			b.given = `""`
		}
	}
	return nil
}

// Schema returns the preferred form, for huma.
func (bucketID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// value returns the bucket id, 0 for none. Integers out of range become noBucket.
func (b bucketID) value(f *fault.Fields, field string) int64 {
	if b.given == "" {
		return 0
	}
	n, err := strconv.ParseInt(b.given, 10, 64)
	if err == nil && n > 0 {
		return n
	}
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		whole, ferr := strconv.ParseFloat(b.given, 64)
		if ferr != nil || whole != math.Trunc(whole) || math.IsInf(whole, 0) {
			f.Add(field, "must be an integer or a string that contains one")
			return 0
		}
		if whole > 0 && whole < 1<<53 {
			return int64(whole)
		}
	}
	return noBucket
}

// noBucket is an id that does not exist.
const noBucket = -1
