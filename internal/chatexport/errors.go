package chatexport

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// ConversationError is why one conversation of an export is not imported. The
// others are not affected. Its kind is fault.Invalid.
type ConversationError struct {
	File    string // where in the upload, as "outer.zip/conversations-001.json"
	Ordinal int    // the conversation's place in the export, from 0
	Place   int    // its place in the file, from 1
	ID      string // its id on the platform; "" when it was not read
	// Skipped says that nothing is lost: the conversation is empty, or there
	// is a newer copy of it in the export.
	Skipped bool
	Reason  string // completes "conversation 3: …"
}

// Error names the file and the conversation and says why.
func (e *ConversationError) Error() string {
	id := ""
	if e.ID != "" {
		id = " (" + shown(e.ID) + ")"
	}
	return fmt.Sprintf("%s: conversation %d%s: %s", e.File, e.Place, id, e.Reason)
}

// Unwrap gives the error its kind.
func (e *ConversationError) Unwrap() error { return fault.New(fault.Invalid, "%s", e.Reason) }

// inFile says what is wrong with a file of the upload: Invalid where it is the
// file's fault, without a kind where it could not be read.
func inFile(name string, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil || fault.Is(err, fault.Invalid):
		return err
	case errors.Is(err, zip.ErrAlgorithm):
		return fault.New(fault.Invalid, "%s: it is compressed in a way that is not supported; deflate and store are", name)
	case errors.Is(err, zip.ErrChecksum):
		return fault.Wrap(fault.Invalid, err, "%s: the file is damaged", name)
	case errors.Is(err, zip.ErrFormat), errors.As(err, &corrupt):
		return fault.Wrap(fault.Invalid, err, "%s: the zip is damaged or incomplete", name)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errTruncated):
		return fault.Wrap(fault.Invalid, err, "%s: the file is incomplete", name)
	case ofValue(err):
		return fault.Wrap(fault.Invalid, err, "%s: the file is not JSON", name)
	}
	return fmt.Errorf("read %s: %w", name, err)
}

// shown makes a name from a file fit to be shown in one line.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	return cut(name, 200)
}
