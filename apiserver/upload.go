package apiserver

import (
	"context"
	"errors"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// defaultImportFile is the default size limit of an imported file, bytes.
	defaultImportFile = 4 << 30
	// formOverhead is the size allowed for the rest of the form, bytes.
	formOverhead = 1 << 20
	formData     = "multipart/form-data"
	// maxField is the length limit of a field other than the file, bytes.
	maxField = 1000
	// maxFileName is the length limit of the stored name of a file, bytes.
	maxFileName = 255
)

type importFileOutput struct {
	Body startedImportBody
}

type startedImportBody struct {
	ImportID string            `json:"importId" doc:"The import of the first file."`
	Imports  []startedFileBody `json:"imports" doc:"The import of each file, in order."`
}

type startedFileBody struct {
	ImportID string `json:"importId"`
	File     string `json:"file" doc:"The name of the file; empty if the request does not contain it."`
}

var docImportFile = doc{
	id: "importFile", tag: tagChats, summary: "Import an export of an assistant or of Mnemo",
	links: map[string]string{"getImport.importId": "/importId", "followImport.importId": "/importId"},
	description: "The export as downloaded: JSON, JSON lines, CSV or HTML, alone or in a zip, gzip or tar, including multi-part exports and nested zips. " +
		"Accepted are exports of " + chatexport.PlatformNames("and") + ". The format is detected by content. " +
		"The response is sent when the file is stored; GET /api/chat-history/imports/{importId} returns the progress of the import. " +
		"The newest state of each conversation wins, in any order of files; importing a file twice changes nothing. " +
		"Each file of a request has an import of its own. An error rejects all of them and names the file. " +
		"If the file exceeds the conversation quota, its newest conversations become active and the rest are blocked until quota is available. " +
		"A file from GET /api/export restores ids, times, versions and states, and can only be imported into an empty account. " +
		"With an `Idempotency-Key`, requests with the same files, platform and skipInvalid have the same body.",
	form: &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"},
		Properties: map[string]*huma.Schema{
			"file": {Type: huma.TypeString, Format: "binary", Description: "The export file. All files of a request are at most 4 GiB unless configured otherwise."},
			"files": {Type: huma.TypeArray, MaxItems: new(importer.MaxUnfinished - 1), Items: &huma.Schema{Type: huma.TypeString, Format: "binary"},
				Description: "Further export files."},
			"platform": {Type: huma.TypeString, Enum: platformValues(),
				Description: "Overrides the detected format: only conversations of this platform are imported."},
			"skipInvalid": {Type: huma.TypeString, Enum: []any{"true", "false"},
				Description: "true restores a file from GET /api/export without its invalid lines, at most 1,000, and without what belongs to them. " +
					"A warning of the import names the first 20. By default, the file is rejected with an error that names them."},
		},
	},
	request: example(`{"file":"[{\"uuid\":\"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15\",\"name\":\"Night train\",\"chat_messages\":[]}]","platform":"claude"}`),
	status:  http.StatusAccepted,
	response: example(`{"importId":"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60",` +
		`"imports":[{"importId":"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60","file":"conversations.json"}]}`),
	idempotency: "import",
}

// fieldName is the form of the names of unknown fields.
var fieldName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// formKey is the context key of a form's *multipart.Reader.
type formKey struct{}

// formBody is the huma middleware of routes with a file upload. It rejects other
// media types and oversized bodies before reading them.
func (s *Server) formBody(ctx huma.Context, next func(huma.Context)) {
	c := httpx.FiberContext(ctx)
	parts, err := s.formParts(c)
	if err != nil {
		s.abort(ctx, err)
		return
	}
	// The boundary differs between requests, so the parts are hashed instead of the body.
	keyed, _, err := httpx.WithIdempotencyKey(ctx, httpx.RequestBody(c))
	if err != nil {
		s.abort(ctx, err)
		return
	}
	next(huma.WithValue(keyed, formKey{}, parts))
}

// formParts returns the parts of a multipart request.
func (s *Server) formParts(c *fiber.Ctx) (*multipart.Reader, error) {
	b := httpx.RequestBody(c)
	if b == nil {
		return nil, fault.New(fault.Invalid, "the body is required and must be multipart/form-data with the export in the field file")
	}
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != formData || params["boundary"] == "" || c.Get(fiber.HeaderContentEncoding) != "" {
		return nil, fault.New(fault.Unsupported, "the body must be multipart/form-data with a boundary, not compressed")
	}
	if b.Exceeds(s.ImportFile + formOverhead) {
		return nil, uploadTooLarge(s.ImportFile)
	}
	return multipart.NewReader(httpx.NewUploadReader(b, c.Context().Conn()), params["boundary"]), nil
}

func (s *Server) importFile(ctx context.Context, who tenant.Identity, _ *struct{}) (*importFileOutput, error) {
	parts, ok := ctx.Value(formKey{}).(*multipart.Reader)
	if !ok {
		return nil, errors.New("handler reached without a form")
	}
	f, err := s.storeUploads(ctx, who, parts)
	if err != nil {
		return nil, err
	}
	out := startedImportBody{ImportID: f.ids[0]}
	for i, id := range f.ids {
		out.Imports = append(out.Imports, startedFileBody{ImportID: id, File: f.uploads[i].Name})
	}
	return &importFileOutput{Body: out}, nil
}

// storeUploads stores the files of a form and starts their imports.
func (s *Server) storeUploads(ctx context.Context, who tenant.Identity, parts *multipart.Reader) (*importForm, error) {
	// The upload may take longer than a request; each statement has its own deadline.
	ctx = context.WithoutCancel(ctx)
	f := &importForm{server: s, who: who, left: s.ImportFile}
	err := f.read(ctx, parts)
	if err == nil {
		return f, nil
	}
	for _, u := range f.uploads {
		if dropped := u.Abort(ctx); dropped != nil {
			s.Log.WarnContext(ctx, "remove incomplete upload; will be retried by a job", "error", dropped)
		}
	}
	return nil, err
}

// platformValues returns the values of the field platform.
func platformValues() []any {
	out := make([]any, len(chatexport.Platforms))
	for i, platform := range chatexport.Platforms {
		out[i] = platform
	}
	return out
}
