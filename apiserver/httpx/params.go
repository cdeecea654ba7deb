package httpx

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Params parses query parameters and collects their errors. An empty parameter
// counts as absent.
type Params struct {
	fault.Fields
}

// Integer parses a whole number of at least minimum. Numbers out of range become
// the largest int32.
func (p *Params) Integer(name, text string, fallback, minimum int) int {
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0:
		return math.MaxInt32
	case err != nil || n < int64(minimum):
		p.Add(name, "must be an integer of at least %d", minimum)
		return fallback
	}
	return int(n)
}

// Score parses a number from 0 to 1, nil if absent.
func (p *Params) Score(name, text string) *float64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1) {
		p.Add(name, "must be a number from 0 to 1")
		return nil
	}
	return &n
}

// Boolean parses true, false, 1 or 0.
func (p *Params) Boolean(name, text string) bool {
	switch strings.ToLower(text) {
	case "true", "1":
		return true
	case "", "false", "0":
	default:
		p.Add(name, "must be true, false, 1 or 0")
	}
	return false
}
