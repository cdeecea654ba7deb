//go:build !amd64

package dot

import "testing"

// eachWay runs a test.
func eachWay[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, do func(T)) {
	t.Run("portable", do)
}
