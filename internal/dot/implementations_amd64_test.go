package dot

import "testing"

// eachWay runs a test with the instructions of this processor, and with portable code.
func eachWay[T interface {
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
