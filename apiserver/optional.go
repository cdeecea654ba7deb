package apiserver

// orEmpty returns a non-nil list, which is not encoded as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// value returns the value of an optional field, or the default.
func value[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
