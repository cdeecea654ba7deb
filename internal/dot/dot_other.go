//go:build !amd64

package dot

// vectorWidth is 0, because there is no vectorSum and no floatSum.
var vectorWidth = 0

func vectorSum(*int16, *byte, int) int64 { panic("not reached") }

func floatSum(*float32, *float32, int) float32 { panic("not reached") }
