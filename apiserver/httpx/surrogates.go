package httpx

import "strconv"

// loneSurrogate returns the offset of the first unpaired surrogate escape, \ud800
// to \udfff, or -1.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // the escaped character
		switch unit := surrogate(data, i-1); {
		case unit < 0:
		case unit < 0xdc00 && surrogate(data, i+5) >= 0xdc00:
			i += 10
		default:
			return i - 1
		}
	}
	return -1
}

// surrogate returns the surrogate escaped at an offset, or -1.
func surrogate(data []byte, at int) int64 {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
	if err != nil || unit < 0xd800 || unit > 0xdfff {
		return -1
	}
	return int64(unit)
}
