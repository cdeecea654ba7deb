package httpx

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// counted is memory without a limit.
type counted int64

func (c *counted) Add(bytes int64) error {
	*c += counted(bytes)
	return nil
}

// Values are counted across the blocks in which a body is read, and not in texts.
func TestValuesAreCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, json string
		want         int64
	}{
		"Few":     {"Objects, arrays and commas count.", `{"a":[1,2,{"b":null}]}`, 5},
		"Text":    {"A text is one value, whatever it contains.", `{"a":"` + strings.Repeat(`{[,\"`, 9) + `\\"}`, 1},
		"Objects": {"Empty objects are cheap to send.", "[" + strings.Repeat("{},", 9) + "{}]", 20},
		"Numbers": {"So are numbers.", "[" + strings.Repeat("1,", 9) + "1]", 10},
		"Nested":  {"So are lists in lists.", strings.Repeat("[", 9), 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := range len(tc.json) {
				var v valueCounter
				for block := range slices.Chunk([]byte(tc.json), size+1) {
					if err := v.count(block); err != nil {
						t.Fatal(err)
					}
				}
				if v.n != tc.want {
					t.Errorf("%s Got %d in blocks of %d bytes, want %d", tc.reason, v.n, size+1, tc.want)
				}
			}
		})
	}
}

// A body of too many values is refused while it is read. Three bodies of 45 MiB with {},{},… were read completely before
// their values were counted, which raised the memory of the process from 72 to 403 MiB.
func TestBodyOfManyValuesIsNotReadCompletely(t *testing.T) {
	t.Parallel()
	const size = 50 << 20
	body := strings.NewReader(strings.Repeat("{},", size/3))
	r := &intakeReader{Reader: body, use: new(counted)}
	if _, err := io.Copy(io.Discard, r); !fault.Is(err, fault.Invalid) {
		t.Errorf("reading: %v, want an invalid body", err)
	}
	if read := size - body.Len(); read > 3*maxValues {
		t.Errorf("%d bytes were read, want at most those of %d values", read, maxValues)
	}
}

// A body that is nested too deeply is refused while it is read. A filter of 9,900 nested NOT kept the path of each level
// when it was parsed, which raised the memory of the process from 491 to 1,159 MiB.
func TestDeepBodyIsNotReadCompletely(t *testing.T) {
	t.Parallel()
	body := strings.NewReader(`{"text":"` + strings.Repeat("[{", 100) + `",` + strings.Repeat(`"NOT":{`, 9_900) + strings.Repeat(`}`, 9_901))
	size := body.Len()
	_, err := io.Copy(io.Discard, &intakeReader{Reader: body, use: new(counted)})
	if err == nil || err.Error() != "the body must not be nested more than 64 levels deep" {
		t.Errorf("reading: %v, want the limit of levels", err)
	}
	if read := size - body.Len(); read > size/4 {
		t.Errorf("%d bytes of %d were read, want at most a quarter", read, size)
	}
}

// A value counts with the memory that it needs when it is decoded.
func TestValuesCountWithTheirMemory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want int64
	}{
		"Values": {strings.Repeat("{},", 10_000), 20_000 * valueBytes},
		"Text":   {`"` + strings.Repeat("x", 1<<20) + `"`, 1<<20 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got counted
			if _, err := io.Copy(io.Discard, &intakeReader{Reader: strings.NewReader(tc.body), use: &got}); err != nil {
				t.Fatal(err)
			}
			if int64(got) != tc.want {
				t.Errorf("%d bytes are counted, want %d", got, tc.want)
			}
		})
	}
}
