package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// records yields the records of a file, which must have the number of lines that the
// manifest states.
func records[R, T any](a *Archive, file string, want int64, check func(R, *fault.Fields), to func(R) T) iter.Seq2[T, error] {
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
				yield(none, err)
				return
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

func record[R any](line []byte, file string, n int64, check func(R, *fault.Fields)) (R, error) {
	var v R
	if !utf8.Valid(line) || json.Unmarshal(line, &v) != nil {
		return v, fault.New(fault.Invalid, "%s line %d is not valid JSON for this file", file, n)
	}
	var f fault.Fields
	check(v, &f)
	if err := f.Err(); err != nil {
		return v, fault.New(fault.Invalid, "%s line %d: %v", file, n, err)
	}
	return v, nil
}
