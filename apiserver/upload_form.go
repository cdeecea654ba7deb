package apiserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// importForm is an import form that is being read.
type importForm struct {
	server  *Server
	who     tenant.Identity
	uploads []*importer.Upload
	options importer.ImportOptions
	sums    []byte // hashes of the files
	left    int64  // bytes that further files may have
	ids     []string
}

// read reads the form and starts the imports.
func (f *importForm) read(ctx context.Context, parts *multipart.Reader) error {
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // a wrapped io.EOF means a truncated form
			break
		}
		if err != nil {
			return brokenForm(err)
		}
		switch part.FormName() {
		case "file":
			err = f.file(ctx, part)
		case "files":
			if part.FileName() == "" {
				return fault.New(fault.Invalid, "each part named files must have a file name")
			}
			err = f.file(ctx, part)
		case "platform":
			err = f.readPlatform(part)
		case "skipInvalid":
			err = f.readSkipInvalid(part)
		default:
			if !fieldName.MatchString(part.FormName()) {
				return fault.New(fault.Invalid, "unknown form field: the fields are file, files, platform and skipInvalid, and other names must be 1 to 100 letters, digits, dots, dashes or underscores")
			}
			_, err = io.Copy(io.Discard, io.LimitReader(part, formOverhead))
			err = brokenForm(err)
		}
		if err != nil {
			return err
		}
	}
	if len(f.uploads) == 0 {
		return fault.New(fault.Invalid, "file is required and must contain the export")
	}
	var err error
	f.ids, err = f.server.Imports.FinishUploads(ctx, f.who, f.options, f.request(ctx), f.uploads...)
	return err
}

// file stores a file while it is received. Errors of one of several files name it.
func (f *importForm) file(ctx context.Context, part *multipart.Part) error {
	if len(f.uploads) == importer.MaxUnfinished {
		return fault.New(fault.Invalid, "a request must contain at most %d files", importer.MaxUnfinished)
	}
	name := fileName(part.FileName())
	err := f.store(ctx, name, part)
	if refused, ok := errors.AsType[*fault.Error](err); ok && len(f.uploads) > 1 && name != "" {
		named := *refused
		named.Message = name + ": " + named.Message
		return &named
	}
	return err
}

func (f *importForm) store(ctx context.Context, name string, part *multipart.Part) error {
	u, err := f.server.Imports.BeginUpload(ctx, f.who, f.uploads...)
	if err != nil {
		return err
	}
	u.Name = name
	f.uploads = append(f.uploads, u)
	sum := sha256.New()
	in := &clientReader{r: io.TeeReader(io.LimitReader(part, f.left+1), sum)}
	n, err := u.ReadFrom(ctx, in)
	f.left -= n
	switch {
	case in.err != nil:
		return brokenForm(in.err)
	case f.left < 0:
		return uploadTooLarge(f.server.ImportFile)
	case err != nil:
		return err
	}
	f.sums = sum.Sum(f.sums)
	return nil
}

// fileName returns a name as it is stored: without its path and control characters, and
// shortened.
func fileName(name string) string {
	name = name[strings.LastIndexByte(name, '\\')+1:]
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(name, "")))
	for len(name) > maxFileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// clientReader records read errors, which are the client's.
type clientReader struct {
	r   io.Reader
	err error
}

func (c *clientReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (f *importForm) readPlatform(part *multipart.Part) error {
	text, err := readField(part)
	if err != nil {
		return err
	}
	f.options.Platform = text
	return chatexport.CheckPlatform(text)
}

func (f *importForm) readSkipInvalid(part *multipart.Part) error {
	text, err := readField(part)
	if err != nil {
		return err
	}
	if f.options.SkipInvalid = text == "true"; !f.options.SkipInvalid && text != "false" && text != "" {
		return fault.New(fault.Invalid, "skipInvalid must be true or false")
	}
	return nil
}

func readField(part *multipart.Part) (string, error) {
	text, err := io.ReadAll(io.LimitReader(part, maxField))
	return string(text), brokenForm(err)
}

// request returns the idempotency record of the request.
func (f *importForm) request(ctx context.Context) tenant.Request {
	r := httpx.IdempotentRequestOf(ctx)
	if r == nil {
		return tenant.Request{}
	}
	_, _ = r.Body.Write(f.sums) // a hash never returns an error
	_, _ = r.Body.Write([]byte(f.options.Platform))
	if f.options.SkipInvalid {
		_, _ = r.Body.Write([]byte("+"))
	}
	return requestOf(ctx)
}

// brokenForm returns the error for a truncated or invalid form, or one that arrives too
// slowly; nil for nil.
func brokenForm(err error) error {
	if errors.Is(err, httpx.ErrSlowUpload) {
		return httpx.ErrSlowUpload
	}
	return fault.Wrap(fault.Invalid, err, "incomplete or invalid form: the body must be multipart/form-data with the export in the field file")
}

func uploadTooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the upload must be at most %d bytes; split it or ask your administrator for a higher limit", limit)
}
