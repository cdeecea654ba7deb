package apiserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// defaultImportFile is the largest file of an import, bytes.
	defaultImportFile = 4 << 30
	// formRoom is what a form may take beside its file, bytes.
	formRoom = 1 << 20
	// uploadPause is how long a client may send nothing: an upload as a whole
	// may take hours.
	uploadPause = 30 * time.Second
	formData    = "multipart/form-data"
	// maxField is the longest value of a field that is no file, bytes.
	maxField = 1000
)

type importFileOutput struct {
	Body startedImportBody
}

type startedImportBody struct {
	ImportID string `json:"importId"`
}

var docImportFile = doc{
	id: "importFile", tag: tagChats, summary: "Import an export of ChatGPT, Claude or this API",
	links: map[string]string{"getImport.importId": "/importId", "followImport.importId": "/importId"},
	description: "A .zip or .json as the platform gives it, parts and zips in zips included; what it is, is found by its content. " +
		"The answer comes when the file is stored; its conversations follow, and GET /api/chat-history/imports/{importId} tells how far it is. " +
		"Conversations that are there already gain what is new; importing a file twice changes nothing. " +
		"Over the conversation quota the newest of the file are active and the rest blocked until there is room. " +
		"What GET /api/export gave goes into an empty account only, with its ids, times, versions and states; otherwise the import fails and says so. " +
		"With an `Idempotency-Key`, the same file and platform count as the same body.",
	form: &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"}, Extensions: fieldNames,
		Properties: map[string]*huma.Schema{
			"file": {Type: huma.TypeString, Format: "binary", MinLength: new(1), Description: "The export, at most 4 GiB unless the host says otherwise."},
			"platform": {Type: huma.TypeString, Enum: []any{chatexport.ChatGPT, chatexport.Claude},
				Description: "Overrules what the file looks like: only this platform's conversations are read."},
		},
	},
	request:  example(`{"file":"[{\"uuid\":\"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15\",\"name\":\"Night train\",\"chat_messages\":[]}]","platform":"claude"}`),
	status:   http.StatusAccepted,
	response: example(`{"importId":"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"}`),
	once:     "import",
}

// formKey is the context key of a form's *multipart.Reader.
type formKey struct{}

// formBody is the huma middleware of routes that take a form with a file: it
// refuses what is none or too large before reading any of it.
func (s *Server) formBody(ctx huma.Context, next func(huma.Context)) {
	c := fiberCtx(ctx)
	parts, err := s.partsOf(c)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	// The body differs each time by its boundary: its parts are hashed instead.
	known, _, err := withRepeatable(ctx, requestBody(c))
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	next(huma.WithValue(known, formKey{}, parts))
}

// partsOf reads a request's body as a form with a file.
func (s *Server) partsOf(c *fiber.Ctx) (*multipart.Reader, error) {
	b := requestBody(c)
	if b == nil {
		return nil, fault.New(fault.Invalid, "the body is required: a form (multipart/form-data) with the file in its field file")
	}
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != formData || params["boundary"] == "" || c.Get(fiber.HeaderContentEncoding) != "" {
		return nil, fault.New(fault.Unsupported, "the body must be a form (Content-Type: multipart/form-data with its boundary), not compressed")
	}
	if int64(b.left) > s.ImportFile+formRoom {
		return nil, fileTooLarge(s.ImportFile)
	}
	return multipart.NewReader(&patientReader{r: b, conn: c.Context().Conn()}, params["boundary"]), nil
}

// patientReader lets a body take long as long as some of it comes.
type patientReader struct {
	r    io.Reader
	conn net.Conn
}

func (p *patientReader) Read(b []byte) (int, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(uploadPause)); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

func (s *Server) importFile(ctx context.Context, who tenant.Identity, _ *struct{}) (*importFileOutput, error) {
	parts, ok := ctx.Value(formKey{}).(*multipart.Reader)
	if !ok {
		return nil, errors.New("handler reached without a form")
	}
	id, err := s.takeFile(ctx, who, parts)
	if err != nil {
		return nil, err
	}
	return &importFileOutput{Body: startedImportBody{ImportID: id}}, nil
}

// takeFile takes the file of a form in and returns the import's id.
func (s *Server) takeFile(ctx context.Context, who tenant.Identity, parts *multipart.Reader) (string, error) {
	// As long as the client keeps sending; each statement has its deadline.
	ctx = context.WithoutCancel(ctx)
	f := importForm{server: s, who: who}
	id, err := f.take(ctx, parts)
	if err != nil && f.upload != nil {
		if dropped := f.upload.Discard(ctx); dropped != nil {
			s.Log.WarnContext(ctx, "an upload is left for its job to remove", "error", dropped)
		}
	}
	return id, err
}

// importForm is a form being read.
type importForm struct {
	server   *Server
	who      tenant.Identity
	upload   *importer.Upload
	platform string
	sum      tenant.Hash // of the file
}

// take reads the form and commits the import.
func (f *importForm) take(ctx context.Context, parts *multipart.Reader) (string, error) {
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // one that is wrapped tells of a form without its end
			break
		}
		if err != nil {
			return "", brokenForm(err)
		}
		switch part.FormName() {
		case "file":
			err = f.file(ctx, part)
		case "platform":
			err = f.readPlatform(part)
		default:
			if !fieldName.MatchString(part.FormName()) {
				return "", fault.New(fault.Invalid, "the form takes the fields file and platform; the name of another one must be 1 to 100 letters, digits, dots, dashes or underscores")
			}
			_, err = io.Copy(io.Discard, io.LimitReader(part, formRoom))
			err = brokenForm(err)
		}
		if err != nil {
			return "", err
		}
	}
	if f.upload == nil {
		return "", fault.New(fault.Invalid, "file is required: the field of the form with the export")
	}
	return f.upload.Finish(ctx, f.platform, f.request(ctx))
}

// file stores the file while it comes.
func (f *importForm) file(ctx context.Context, part *multipart.Part) error {
	if f.upload != nil {
		return fault.New(fault.Invalid, "file takes one file: import them one by one, or in one zip")
	}
	var err error
	if f.upload, err = f.server.Imports.BeginUpload(ctx, f.who); err != nil {
		return err
	}
	limit, sum := f.server.ImportFile, sha256.New()
	in := &clientReader{r: io.TeeReader(io.LimitReader(part, limit+1), sum)}
	n, err := f.upload.ReadFrom(ctx, in)
	switch {
	case in.err != nil:
		return brokenForm(in.err)
	case err != nil:
		return err
	case n > limit:
		return fileTooLarge(limit)
	}
	f.sum = tenant.Hash(sum.Sum(nil))
	return nil
}

// clientReader remembers what went wrong on the client's side.
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
	text, err := io.ReadAll(io.LimitReader(part, maxField))
	if err != nil {
		return brokenForm(err)
	}
	switch f.platform = string(text); f.platform {
	case "", chatexport.ChatGPT, chatexport.Claude:
		return nil
	}
	return fault.New(fault.Invalid, "platform takes %s or %s", chatexport.ChatGPT, chatexport.Claude)
}

// request names the request, if it may be sent again.
func (f *importForm) request(ctx context.Context) tenant.Request {
	r, ok := ctx.Value(repeatableKey{}).(*repeatable)
	if !ok {
		return tenant.Request{}
	}
	_, _ = r.body.Write(f.sum[:]) // a hash takes everything
	_, _ = r.body.Write([]byte(f.platform))
	return requestOf(ctx)
}

// brokenForm is what came of a form that breaks off or is none; nil for nil.
func brokenForm(err error) error {
	return fault.Wrap(fault.Invalid, err, "the form could not be read to its end: it takes multipart/form-data with the export in its field file")
}

func fileTooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the file must be at most %d bytes: split it, or ask whoever runs this server for more", limit)
}
