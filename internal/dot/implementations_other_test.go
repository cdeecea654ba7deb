//go:build !amd64

package dot

import "testing"

// eachImplementation runs a test.
func eachImplementation[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, do func(T)) {
	t.Run("portable", do)
}
