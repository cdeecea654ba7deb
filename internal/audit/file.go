package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Format is the format of an exported file: JSON Lines with a header, records and a
// footer.
const Format = "mnemo-audit/1"

// maxLine is the maximum size of a line. The longest record has MaxObjects UUIDs.
const maxLine = 64 << 10

// Header is the first line of a file. A file of a user contains the records of one user,
// which are not consecutive.
type Header struct {
	Format   string    `json:"format"`
	Tenant   tenant.ID `json:"tenant"`
	User     bool      `json:"user,omitempty"` // only the records of one user
	After    int64     `json:"after"`          // the record before the first one; 0 at the start of the chain
	Previous string    `json:"prev,omitempty"` // hash of that record; not in a file of a user
}

// footer is the last line of a file. Without it the file is incomplete.
type footer struct {
	Records int64  `json:"records"`
	Last    int64  `json:"last"`   // sequence number of the last record
	Digest  string `json:"digest"` // SHA-256 of the records' hashes, in order
}

// Writer writes a file.
type Writer struct {
	to     *bufio.Writer
	begun  bool
	header Header
	end    footer
	digest hash.Hash
}

// NewWriter returns a writer of a file of a tenant, or of the records of one user after a
// sequence number.
func NewWriter(to io.Writer, h Header) *Writer {
	h.Format = Format
	return &Writer{to: bufio.NewWriter(to), header: h, end: footer{Last: h.After}, digest: sha256.New()}
}

// Write appends a record.
func (w *Writer) Write(r Record) error {
	if !w.begun && !w.header.User {
		w.header.After, w.header.Previous = r.Sequence-1, r.Previous
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.end.Records++
	w.end.Last = r.Sequence
	_, _ = io.WriteString(w.digest, r.Hash) // never fails
	return w.line(r)
}

// Close writes the footer.
func (w *Writer) Close() error {
	if err := w.begin(); err != nil {
		return err
	}
	w.end.Digest = hex.EncodeToString(w.digest.Sum(nil))
	if err := w.line(w.end); err != nil {
		return err
	}
	if err := w.to.Flush(); err != nil {
		return fmt.Errorf("write audit records: %w", err)
	}
	return nil
}

func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.line(w.header)
}

func (w *Writer) line(v any) error {
	text, err := encode(v)
	if err == nil {
		_, err = w.to.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write audit records: %w", err)
	}
	return nil
}

// Anchor is a record whose hash is known from elsewhere, such as the head of an earlier
// export. It detects a chain that was rewritten or cut off at its end.
type Anchor struct {
	Sequence int64
	Hash     string
}

// ParseAnchor parses SEQUENCE:HASH.
func ParseAnchor(s string) (Anchor, error) {
	number, sum, _ := strings.Cut(s, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if raw, hexErr := hex.DecodeString(sum); err != nil || hexErr != nil || n < 1 || len(raw) != sha256.Size {
		return Anchor{}, fault.New(fault.Invalid, "an anchor must have the form SEQUENCE:HASH, as printed by `mnemo audit verify`")
	}
	return Anchor{Sequence: n, Hash: sum}, nil
}

// String returns SEQUENCE:HASH.
func (a Anchor) String() string { return fmt.Sprintf("%d:%s", a.Sequence, a.Hash) }

// Verified is the result of a verification.
type Verified struct {
	Header  Header
	Records int64
	Last    Anchor // the last record; zero if there is none
}

// Verify checks that a file is complete and that no record was edited, dropped or
// reordered, and that it contains the anchors. It stops at the first error and names its
// line.
func Verify(r io.Reader, anchors ...Anchor) (Verified, error) {
	v := &verifier{anchors: map[int64]string{}, digest: sha256.New()}
	for _, a := range anchors {
		v.anchors[a.Sequence] = a.Hash
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() {
		v.n++
		if err := v.line(lines.Bytes()); err != nil {
			return Verified{}, fault.New(fault.Invalid, "line %d: %v", v.n, err)
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("not a line of an audit file: it is longer than %d bytes", maxLine)
	}
	if err != nil {
		return Verified{}, fault.New(fault.Invalid, "line %d: %v", v.n+1, err)
	}
	return v.finish()
}

// verifier is the state of a verification.
type verifier struct {
	n       int // lines read
	header  Header
	end     *footer
	records int64
	last    Anchor
	anchors map[int64]string
	digest  hash.Hash
}

func (v *verifier) line(text []byte) error {
	switch {
	case v.n == 1:
		return v.readHeader(text)
	case v.end != nil:
		return fmt.Errorf("the file has data after its footer")
	case bytes.HasPrefix(text, []byte(`{"records":`)):
		return v.readFooter(text)
	}
	var r Record
	if err := decode(text, &r); err != nil {
		return err
	}
	return v.check(r)
}

func (v *verifier) readHeader(text []byte) error {
	if err := decode(text, &v.header); err != nil {
		return err
	}
	if v.header.Format != Format {
		return fmt.Errorf("the format is %q, but must be %q", v.header.Format, Format)
	}
	v.last = Anchor{Sequence: v.header.After, Hash: v.header.Previous}
	return v.checkAnchor(v.last)
}

func (v *verifier) readFooter(text []byte) error {
	var f footer
	if err := decode(text, &f); err != nil {
		return err
	}
	v.end = &f
	got := footer{Records: v.records, Last: v.last.Sequence, Digest: hex.EncodeToString(v.digest.Sum(nil))}
	if f != got {
		return fmt.Errorf("the file has %d records up to %d, but must have %d up to %d with the stated digest", got.Records, got.Last, f.Records, f.Last)
	}
	return nil
}

// check checks a record and its place in the chain.
func (v *verifier) check(r Record) error {
	sum, err := r.Sum()
	switch {
	case err != nil:
		return err
	case r.Tenant != v.header.Tenant:
		return fmt.Errorf("record %d is of another tenant", r.Sequence)
	case r.Hash != sum:
		return fmt.Errorf("record %d was edited: its hash does not match its content", r.Sequence)
	case r.Sequence <= v.last.Sequence:
		return fmt.Errorf("record %d follows record %d: records were reordered or repeated", r.Sequence, v.last.Sequence)
	case !v.header.User && r.Sequence != v.last.Sequence+1:
		return fmt.Errorf("record %d follows record %d: records were dropped", r.Sequence, v.last.Sequence)
	case !v.header.User && r.Previous != v.last.Hash:
		return fmt.Errorf("record %d does not continue the chain: the record before it was replaced", r.Sequence)
	}
	v.records++
	v.last = Anchor{Sequence: r.Sequence, Hash: r.Hash}
	_, _ = io.WriteString(v.digest, r.Hash) // never fails
	return v.checkAnchor(v.last)
}

// checkAnchor compares a record with the anchor of its sequence number, if any.
func (v *verifier) checkAnchor(a Anchor) error {
	if want, ok := v.anchors[a.Sequence]; ok && want != a.Hash {
		return fmt.Errorf("record %d differs from its anchor: the chain was rewritten", a.Sequence)
	}
	delete(v.anchors, a.Sequence)
	return nil
}

func (v *verifier) finish() (Verified, error) {
	if v.end == nil {
		return Verified{}, fault.New(fault.Invalid, "the file is incomplete: it ends after line %d without a footer", v.n)
	}
	for n := range v.anchors {
		return Verified{}, fault.New(fault.Invalid, "the file does not contain record %d of the anchor: it has the records after %d up to %d", n, v.header.After, v.last.Sequence)
	}
	return Verified{Header: v.header, Records: v.records, Last: v.last}, nil
}

// decode decodes a line and requires that it is exactly as written, so that nothing can be
// added that the hash does not cover.
func decode(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("not a line of an audit file: %w", err)
	}
	again, err := encode(to)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		return fmt.Errorf("the line was edited: it differs from the exported form")
	}
	return nil
}
