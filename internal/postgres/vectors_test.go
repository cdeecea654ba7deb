package postgres

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHalfFromFloat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		in     float32
		want   uint16
	}{
		"zero":                {"exact", 0, 0},
		"negative zero":       {"the sign is kept", float32(math.Copysign(0, -1)), 0x8000},
		"one":                 {"exact", 1, 0x3c00},
		"minus two":           {"exact", -2, 0xc000},
		"largest":             {"exact", 65504, 0x7bff},
		"just below overflow": {"rounds down to the largest", 65519.996, 0x7bff},
		"overflow":            {"rounds up to infinity", 65520, 0x7c00},
		"infinity":            {"stays", float32(math.Inf(-1)), 0xfc00},
		"nan":                 {"stays", float32(math.NaN()), 0x7e00},
		"tie to even, down":   {"1+2^-11 is between 1 and 1+2^-10", 1 + 0x1p-11, 0x3c00},
		"tie to even, up":     {"1+3*2^-11 is between 1+2^-10 and 1+2^-9", 1 + 3*0x1p-11, 0x3c02},
		"above a tie":         {"nearest", 1 + 0x1p-11 + 0x1p-23, 0x3c01},
		"smallest normal":     {"exact", 0x1p-14, 0x0400},
		"carry to normal":     {"the largest subnormal and a bit rounds to the smallest normal", 0x1p-14 - 0x1p-26, 0x0400},
		"largest subnormal":   {"exact", 0x1p-14 - 0x1p-24, 0x03ff},
		"smallest":            {"exact", 0x1p-24, 0x0001},
		"half of smallest":    {"a tie goes to even, which is zero", 0x1p-25, 0},
		"subnormal tie up":    {"1.5 of the smallest goes to two", 0x1.8p-24, 0x0002},
		"underflow":           {"rounds to zero", -0x1p-30, 0x8000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := halfFromFloat(test.in); got != test.want {
				t.Errorf("halfFromFloat(%v) = %#04x, want %#04x: %s", test.in, got, test.want, test.reason)
			}
		})
	}
}

func TestHalfRoundTrip(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		if h&halfInfinity == halfInfinity {
			continue
		}
		if got := halfFromFloat(floatFromHalf(uint16(h))); got != uint16(h) {
			t.Fatalf("%#04x came back as %#04x", h, got)
		}
	}
}

func TestHalfRoundsToNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float32Range(-65000, 65000).Draw(t, "v")
		h := halfFromFloat(v)
		off := math.Abs(float64(floatFromHalf(h)) - float64(v))
		for _, other := range []uint16{h + 1, h - 1} {
			if other&halfInfinity == halfInfinity || other&0x8000 != h&0x8000 {
				continue
			}
			if d := math.Abs(float64(floatFromHalf(other)) - float64(v)); d < off {
				t.Fatalf("%v became %v, but %v is nearer", v, floatFromHalf(h), floatFromHalf(other))
			}
		}
	})
}

func TestHalfVectorsKeepTheirCosine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		unit := func(name string) []float32 {
			v := rapid.SliceOfN(rapid.Float32Range(-1, 1), n, n).Draw(t, name)
			v[0] += 2 // not the zero vector
			return normalized(v)
		}
		a, b := unit("a"), unit("b")
		stored := encodeHalf(b)
		var want, got float64
		for i, x := range decodeHalf(stored) {
			want += float64(a[i]) * float64(b[i])
			got += float64(a[i]) * float64(x)
		}
		if math.Abs(got-want) >= 1e-3 {
			t.Errorf("cosine %v became %v", want, got)
		}
		if d := rebased(a).dotHalf(stored); math.Abs(d-got) > 1e-5 {
			t.Errorf("dotHalf = %v, want %v", d, got)
		}
	})
}

func TestHalfOfNil(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([][]byte{nil, {}}, [][]byte{encodeHalf(nil), encodeHalf([]float32{})}); diff != "" {
		t.Errorf("encodeHalf (-want +got):\n%s", diff)
	}
	if decodeHalf(nil) != nil {
		t.Error("decodeHalf(nil) is not nil")
	}
}

func normalized(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}

func BenchmarkDotHalf(b *testing.B) {
	v := make([]float32, 384)
	for i := range v {
		v[i] = float32(i%7) / 7
	}
	stored := encodeHalf(v)
	asked := rebased(v)
	for b.Loop() {
		asked.dotHalf(stored)
	}
}
