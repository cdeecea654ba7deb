package chatexport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// maxColumns is the number of columns of a spreadsheet that are read.
	maxColumns = 1000
	// maxCommas is the maximum number of commas in a row, including those of texts: each may begin a cell, which needs 24
	// bytes of memory.
	maxCommas = 1 << 18
)

// converted reads a file of another format as JSON: next appends the next value, and
// returns io.EOF after the last one.
type converted struct {
	io.Closer
	next func(out *bytes.Buffer) error
	out  bytes.Buffer
	err  error
}

// Read implements io.Reader.
func (c *converted) Read(p []byte) (int, error) {
	for c.out.Len() == 0 {
		if c.err != nil {
			return 0, c.err
		}
		if c.out.Cap() > 1<<20 {
			c.out = bytes.Buffer{} // after a large value
		}
		c.out.Reset()
		c.err = c.next(&c.out)
	}
	return c.out.Read(p)
}

// conversion converts a file: the result appends the next value.
type conversion func(r io.Reader, limits Limits) func(out *bytes.Buffer) error

// conversions are the types of files that are converted to JSON.
var conversions = map[content]conversion{csvContent: rows, htmlContent: activities}

// asJSON opens a file through a conversion.
func (f file) asJSON(limits Limits, convert conversion) file {
	return file{name: f.name, open: func() (io.ReadCloser, error) {
		r, err := f.open()
		if err != nil {
			return nil, err
		}
		return &converted{Closer: r, next: convert(r, limits)}, nil
	}}
}

// rows converts a CSV file: each row is an object with a member per column.
func rows(r io.Reader, limits Limits) func(*bytes.Buffer) error {
	in := &recordLimit{r: withoutMark(r), limit: limits.Conversation}
	table := csv.NewReader(in)
	table.FieldsPerRecord, table.LazyQuotes, table.ReuseRecord = -1, true, true
	var header []string
	return func(out *bytes.Buffer) error {
		for {
			in.read, in.commas = 0, 0
			row, err := table.Read()
			if err != nil {
				return err
			}
			if header == nil && len(row) < 2 {
				continue // white space before the header
			}
			if header == nil {
				header = slices.Clone(row[:min(len(row), maxColumns)])
				for i, name := range header {
					header[i] = strings.TrimSpace(name)
				}
				continue
			}
			object := make(map[string]string, len(header))
			for i, name := range header {
				if i < len(row) {
					object[name] = row[i]
				}
			}
			return encode(out, object, limits.Conversation)
		}
	}
}

// encode appends a value as JSON. Invalid UTF-8 stays as it is, to be counted by the
// scanner. A value over the limit is cut after it, so that the scanner reports it as too large.
func encode(out *bytes.Buffer, object map[string]string, limit int64) error {
	separator := byte('{')
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out.WriteByte(separator)
		separator = ','
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		out.Write(key)
		out.WriteByte(':')
		quote(out, object[name], limit)
	}
	if separator == '{' {
		out.WriteByte('{')
	}
	out.WriteString("}\n")
	return nil
}

// quote appends a JSON string, until the output exceeds the limit.
func quote(out *bytes.Buffer, text string, limit int64) {
	const hex = "0123456789abcdef"
	out.WriteByte('"')
	for i := 0; i < len(text) && int64(out.Len()) <= limit; i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ':
			out.WriteString(`\u00`)
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}

// errRecord is the error of a row or page element that is too large to read.
var errRecord = errors.New("record too large")

// recordLimit limits the bytes and commas that are read for one record.
type recordLimit struct {
	r      io.Reader
	read   int64
	limit  int64
	commas int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.read += int64(n); l.read > l.limit+window {
		return 0, fault.Wrap(fault.Invalid, errRecord, "a row of the file is larger than %d MiB; is a quote missing?", l.limit>>20)
	}
	if l.commas += bytes.Count(p[:n], []byte(",")); l.commas > maxCommas {
		return 0, fault.Wrap(fault.Invalid, errRecord, "a row of the file has more than %d commas; is a quote missing?", maxCommas)
	}
	return n, err
}

// withoutMark skips an optional byte order mark.
func withoutMark(r io.Reader) io.Reader {
	start := make([]byte, 3)
	n, err := io.ReadFull(r, start)
	start = start[:n]
	following := r
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		following = failedReader{err}
	}
	return io.MultiReader(bytes.NewReader(bytes.TrimPrefix(start, []byte("\uFEFF"))), following)
}

// failedReader is a reader that failed.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }
