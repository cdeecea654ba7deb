package chatexport

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// Valid JSON strings decode as with encoding/json, regardless of where the window and the
// reads of the stream end.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`""`, `"plain"`, `"\u0041\ud83d\ude00\ud800\udc00x"`, `"\ud800\u0041"`, `"\udc00\ud83d"`,
		`"\"\\\/\b\f\n\r\t"`, "\"\xff\xe2\x82\"", `"\ud83d\u12"`, `"\ud83d\ud83d\ude00"`, `"\`, `"half a pair \ud83d"`} {
		for size := range uint8(5) {
			f.Add([]byte(seed), size)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		s, skipper := tight(data, size), tight(data, size)
		got, err := s.text()
		var want string
		if json.Unmarshal(data, &want) != nil {
			return
		}
		want = strings.ReplaceAll(want, "\x00", "")
		if err != nil || got != want {
			t.Errorf("text of %q = %q, %v; want %q", data, got, err, want)
		}
		// Skipping ends at the same offset as reading.
		if err := skipper.skip(); err != nil || skipper.offset() != s.offset() {
			t.Errorf("skip of %q ends at %d, %v; text at %d", data, skipper.offset(), err, s.offset())
		}
	})
}

// tight returns a scanner with a window of a few bytes over a stream with short reads.
func tight(data []byte, size uint8) *scanner {
	s := newScanner(iotest.HalfReader(bytes.NewReader(data)))
	s.buf = s.buf[:3+int(size%16)]
	return s
}

// A string longer than the window is read completely.
func TestLongText(t *testing.T) {
	t.Parallel()
	for _, n := range []int{window - 5, window - 1, window, window + 1, 3*window + 7} {
		want := strings.Repeat("é\n\"😀", n/8) + strings.Repeat("x", n%8)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newScanner(bytes.NewReader(data)).text(); err != nil || got != want {
			t.Errorf("text of %d bytes read as %d bytes: %v", len(want), len(got), err)
		}
	}
}

// Any value is skipped to its end, and flattened to a text of bounded size.
func FuzzSkip(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,{"a":"]"},"\"",null,-1.5e3,true]`, `{"a":{"b":["c",{}]}}`, `[[[[`, `{"a":}`, `]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newScanner(bytes.NewReader(append(bytes.Clone(data), " ;"...)))
		flat := newScanner(bytes.NewReader(append(bytes.Clone(data), " ;"...)))
		var out lines
		flatErr := flat.flatten(&out, "")
		if n := len(out.String()); n > 3*len(data)+16 {
			t.Errorf("%d bytes of JSON became %d of text", len(data), n)
		}
		err := s.skip()
		if !json.Valid(data) {
			return
		}
		c, peekErr := s.peek()
		if err != nil || c != ';' {
			t.Errorf("after skipping %q, next is %q, %v, %v", data, c, err, peekErr)
		}
		if c, err := flat.peek(); flatErr != nil || c != ';' {
			t.Errorf("after flattening %q, next is %q, %v, %v", data, c, flatErr, err)
		}
	})
}

// After an error at any byte of a value, reading continues after that value.
func TestRecoveryEndsWhereSkippingDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := "[" + rapid.StringMatching(`([\[\]{},: a1]|"(\\["\\u]|[a\[\]{}])*")*`).Draw(t, "value") + "]"
		limit := rapid.Int64Range(1, int64(len(value))+1).Draw(t, "limit")
		stream := value + strings.Repeat("]", len(value)) + `;`
		skipped := newScanner(strings.NewReader(stream))
		if _, err := skipped.value(1<<40, 1<<20, skipped.skip); err != nil {
			return // the stream ends within the value
		}
		read := newScanner(iotest.OneByteReader(strings.NewReader(stream)))
		var out lines
		problem, err := read.value(limit, 3, func() error { return read.flatten(&out, "") })
		if err != nil || read.offset() != skipped.offset() {
			t.Fatalf("%q: reading ends at %d (%v, %v), skipping at %d", value, read.offset(), problem, err, skipped.offset())
		}
	})
}

func TestTimes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, in string
		want       time.Time
	}{
		"seconds":      {"as ChatGPT writes them", `1700000000`, time.Unix(1700000000, 0)},
		"fraction":     {"to the microsecond", `1700000000.123456`, time.Unix(1700000000, 123456000)},
		"rounds up":    {"a fraction that rounds to a second", `1700000000.9999999`, time.Unix(1700000001, 0)},
		"exponent":     {"any JSON number", `1.7e9`, time.Unix(1700000000, 0)},
		"milliseconds": {"as browsers write them", `1700000000250`, time.UnixMilli(1700000000250)},
		"iso":          {"as Claude writes them", `"2025-03-01T10:00:00.123456+02:00"`, time.Date(2025, 3, 1, 8, 0, 0, 123456000, time.UTC)},
		"number text":  {"seconds in quotes", `"1700000000"`, time.Unix(1700000000, 0)},
		"null":         {"unknown", `null`, time.Time{}},
		"zero":         {"not 1970", `0`, time.Time{}},
		"negative":     {"not before 1970", `-1`, time.Time{}},
		"huge":         {"out of the supported range", `1e300`, time.Time{}},
		"no number":    {"not a number", `"NaN"`, time.Time{}},
		"object":       {"not a time", `{"a":[1]}`, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScanner(strings.NewReader(tc.in))
			got, err := s.time()
			if err != nil || !got.Equal(tc.want) {
				t.Errorf("%s: time of %s = %v, %v; want %v", tc.reason, tc.in, got, err, tc.want)
			}
		})
	}
}
