package filter

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxDigits   = 40 // characters of a number
	maxExponent = 30
)

var exponent = regexp.MustCompile(`[eE]([+-]?[0-9]+)$`)

// NumberLimits describes the numbers that Decimal accepts.
const NumberLimits = "at most 40 characters, with an exponent between -30 and 30"

// Decimal returns a JSON number in plain decimal notation, without an exponent, as the
// database stores it. ok is false if the number is too long or its exponent too large.
func Decimal(number string) (text string, ok bool) {
	if len(number) > maxDigits {
		return "", false
	}
	at := exponent.FindStringSubmatchIndex(number)
	if at == nil {
		return number, true
	}
	exp, err := strconv.Atoi(number[at[2]:at[3]])
	if err != nil || exp < -maxExponent || exp > maxExponent {
		return "", false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return "", false
	}
	_, fraction, _ := strings.Cut(number[:at[0]], ".")
	return r.FloatString(max(0, len(fraction)-exp)), true
}
