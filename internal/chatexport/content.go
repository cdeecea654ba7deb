package chatexport

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
)

// content is the detected type of a file.
type content int

const (
	other content = iota
	zipContent
	gzipContent
	tarContent
	jsonContent
	htmlContent
	csvContent
)

// sniffed is the size of the start of a file by which its type is detected.
const sniffed = 4 << 10

// sniff detects the type of a file from its start, which it returns.
func sniff(r *bufio.Reader) (content, []byte, error) {
	start, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return other, nil, err
	}
	return kindOf(start), start, nil
}

func kindOf(start []byte) content {
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("PK\x05\x06")):
		return zipContent
	case bytes.HasPrefix(start, []byte("\x1f\x8b\x08")):
		return gzipContent
	case len(start) > 262 && string(start[257:262]) == "ustar":
		return tarContent
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\uFEFF")), " \t\r\n")
	switch {
	case len(text) == 0:
		return other
	case text[0] == '[' || text[0] == '{':
		return jsonContent
	case isHTML(text):
		return htmlContent
	case detect(columnSigns(columns(text)), "") != nil:
		return csvContent
	}
	return other
}

func isHTML(text []byte) bool {
	lower := bytes.ToLower(text[:min(len(text), 16)])
	return bytes.HasPrefix(lower, []byte("<!doctype html")) || bytes.HasPrefix(lower, []byte("<html"))
}

// columns returns the first row of a CSV file, or of a text that is not CSV.
func columns(text []byte) []string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	table := csv.NewReader(bytes.NewReader(line))
	table.LazyQuotes = true
	row, err := table.Read()
	if err != nil {
		return nil
	}
	return row
}

// columnSigns returns the signs of the objects that a row is converted to.
func columnSigns(columns []string) (found signs) {
	for _, name := range columns {
		found |= signBits[string(bytes.TrimSpace([]byte(name)))+`"`]
	}
	return found
}
