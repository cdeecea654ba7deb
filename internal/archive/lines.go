package archive

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxInvalid is the number of invalid lines after which a file is not read further.
const maxInvalid = 1000

// maxKey is the length of the longest valid key, a UUID.
const maxKey = 36

// owner is a record to which others belong. Its key is unique in its file.
type owner interface{ key() string }

// records yields the records of a file, which must have the number of lines that the
// manifest states. It notes invalid lines while the archive is checked, and omits them.
func records[R, T any](a *Archive, file string, want int64, check func(*R, *fault.Fields), to func(R) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		r, err := a.zip.Open(file)
		if errors.Is(err, chatexport.ErrNoFile) {
			err = fault.New(fault.Invalid, "%s is missing in the export", file)
		}
		if err != nil {
			yield(none, err)
			return
		}
		defer r.Close()
		lines := bufio.NewScanner(r)
		longest := a.limits.line(file)
		lines.Buffer(make([]byte, 0, min(64<<10, longest)), longest)
		n := int64(0)
		for lines.Scan() {
			n++
			v, err := record(lines.Bytes(), file, n, check)
			if err != nil {
				if err = a.omit(file, v, err); err != nil {
					yield(none, err)
					return
				}
				continue
			}
			if !yield(to(v), nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(none, fault.New(fault.Invalid, "%s line %d is longer than %d bytes", file, n+1, longest))
		} else if err != nil {
			yield(none, a.zip.About(file, err))
		} else if n != want {
			yield(none, fault.New(fault.Invalid, "%s has %d lines, but %s states %d: the export is incomplete or was changed", file, n, manifestFile, want))
		}
	}
}

// omit notes an invalid line. It returns an error if there are too many.
func (a *Archive) omit(file string, record any, invalid error) error {
	if !a.checking {
		return nil
	}
	if len(a.Invalid) == maxInvalid {
		return fault.New(fault.Invalid, "more than %d lines are invalid", maxInvalid)
	}
	a.Invalid = append(a.Invalid, invalid.Error())
	if o, ok := record.(owner); ok && len(o.key()) <= maxKey {
		a.omitted[file+o.key()] = true
	}
	return nil
}

// maxNamed is the number of invalid lines that an error or a warning names.
const maxNamed = 20

// InvalidLines names the invalid lines, "" if there are none.
func (a *Archive) InvalidLines() string {
	if n := len(a.Invalid) - maxNamed; n > 0 {
		return fmt.Sprintf("%s; and %d others", strings.Join(a.Invalid[:maxNamed], "; "), n)
	}
	return strings.Join(a.Invalid, "; ")
}

func record[R any](line []byte, file string, n int64, check func(*R, *fault.Fields)) (R, error) {
	var v R
	err := exactjson.Unmarshal(line, &v)
	if fault.Is(err, fault.Invalid) {
		return v, fault.New(fault.Invalid, "%s line %d: %v", file, n, err)
	}
	if err != nil || !utf8.Valid(line) {
		return v, fault.New(fault.Invalid, "%s line %d is not valid JSON for this file", file, n)
	}
	var f fault.Fields
	check(&v, &f)
	if err := f.Err(); err != nil {
		return v, fault.New(fault.Invalid, "%s line %d: %v", file, n, err)
	}
	return v, nil
}
