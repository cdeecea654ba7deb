package chatexport

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// ConversationError is the reason why one conversation of an export cannot be
// imported. It does not affect the others. Its kind is fault.Invalid.
type ConversationError struct {
	File     string // path in the upload, such as "outer.zip/conversations-001.json"
	Ordinal  int    // position in the export, from 0
	Position int    // position in the file, from 1
	ID       string // its id on the platform; "" if unknown
	// Skipped reports that nothing is lost: the conversation is empty, or the
	// export has a newer copy.
	Skipped bool
	Reason  string // completes "conversation 3: …"
}

// Error returns the file, the conversation and the reason.
func (e *ConversationError) Error() string {
	id := ""
	if e.ID != "" {
		id = " (" + shown(e.ID) + ")"
	}
	return fmt.Sprintf("%s: conversation %d%s: %s", e.File, e.Position, id, e.Reason)
}

// Unwrap returns an error of kind Invalid.
func (e *ConversationError) Unwrap() error { return fault.New(fault.Invalid, "%s", e.Reason) }

// inFile returns the error of a file of the upload: Invalid if the file is at
// fault, without a kind if it could not be read.
func inFile(name string, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil || fault.Is(err, fault.Invalid):
		return err
	case errors.Is(err, zip.ErrAlgorithm):
		return fault.New(fault.Invalid, "%s: unsupported compression; supported are deflate and store", name)
	case errors.Is(err, zip.ErrChecksum):
		return fault.Wrap(fault.Invalid, err, "%s: the file is damaged", name)
	case errors.Is(err, zip.ErrFormat), errors.As(err, &corrupt):
		return fault.Wrap(fault.Invalid, err, "%s: the zip is damaged or incomplete", name)
	case errors.Is(err, tar.ErrHeader), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fault.Wrap(fault.Invalid, err, "%s: the archive is damaged or incomplete", name)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errTruncated):
		return fault.Wrap(fault.Invalid, err, "%s: the file is incomplete", name)
	case ofValue(err):
		return fault.Wrap(fault.Invalid, err, "%s: the file is not JSON", name)
	}
	return fmt.Errorf("read %s: %w", name, err)
}

// shown sanitizes a name from a file for one line of output.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	return cut(name, 200)
}
