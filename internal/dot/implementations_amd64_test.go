package dot

import "testing"

// eachImplementation runs a test with vectorSum, if the processor can execute it, and with portable code.
func eachImplementation[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, do func(T)) {
	width := vectorWidth
	defer func() { vectorWidth = width }()
	if width > 0 {
		t.Run("vector", do)
	}
	vectorWidth = 0
	t.Run("portable", do)
}
