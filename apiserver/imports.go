package apiserver

import (
	"context"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type importBody struct {
	ImportID   string            `json:"importId"`
	Platform   string            `json:"platform" doc:"Empty until it is detected."`
	Status     string            `json:"status" enum:"queued,running,done,failed" doc:"done means that all conversations are stored and searchable by keyword; embeddings follow."`
	Total      int               `json:"total" doc:"The number of conversations in the file; 0 until counted. When done, it is the sum of imported, updated, skipped and failed."`
	Imported   int               `json:"imported" doc:"New conversations."`
	Updated    int               `json:"updated" doc:"Existing conversations with new or changed messages."`
	Skipped    int               `json:"skipped" doc:"Unchanged, empty and duplicate conversations."`
	Blocked    int               `json:"blocked" doc:"Imported or updated conversations that are over quota: stored, but neither searched nor counted."`
	Failed     int               `json:"failed"`
	Errors     []importErrorBody `json:"errors" doc:"The first 100 errors of conversations, and the error of the file."`
	StartedAt  string            `json:"startedAt" format:"date-time"`
	FinishedAt *string           `json:"finishedAt" format:"date-time" doc:"Null until the import is done or failed."`
	Unchanged  int               `json:"unchanged" doc:"Skipped conversations that were already stored without changes."`
	Indexed    int               `json:"indexed" doc:"Conversations that need no further embedding; it approaches total after the import is done. Failed, skipped and blocked conversations need none."`
	Warnings   []string          `json:"warnings" doc:"Content that was omitted or inferred."`
	File       string            `json:"file" doc:"The name of the file as it was sent; empty if it is unknown, and for an ingested conversation."`
}

type importErrorBody struct {
	Conversation string `json:"conversation" doc:"The platform's id of the conversation, or its position in the file; empty for the whole file."`
	Error        string `json:"error"`
}

func newImportBody(i importer.Import) importBody {
	out := importBody{
		ImportID: i.ID, Platform: i.Platform, Status: string(i.Status), Total: i.Total, Imported: i.Imported, Updated: i.Updated,
		Skipped: i.Skipped, Blocked: i.Blocked, Failed: i.Failed, Errors: make([]importErrorBody, len(i.Errors)),
		StartedAt: chat.Stamp(i.StartedAt), Unchanged: i.Unchanged, Indexed: i.Indexed, Warnings: orEmpty(i.Warnings), File: i.File,
	}
	for n, e := range i.Errors {
		out.Errors[n] = importErrorBody(e)
	}
	if !i.FinishedAt.IsZero() {
		finished := chat.Stamp(i.FinishedAt)
		out.FinishedAt = &finished
	}
	return out
}

const importExample = `{"importId":"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60","platform":"chatgpt","status":"done","total":120,"imported":100,` +
	`"updated":4,"skipped":15,"blocked":10,"failed":1,"errors":[{"conversation":"c-7","error":"JSON is nested too deeply"}],` +
	`"startedAt":"2025-05-09T14:30:00.000Z","finishedAt":"2025-05-09T14:30:08.000Z","unchanged":12,"indexed":97,` +
	`"warnings":["Skipped messages from abandoned branches: 31."],"file":"chatgpt-export.zip"}`

type getImportInput struct {
	ImportID string `path:"importId" doc:"The import's id." example:"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"`
}

type getImportOutput struct {
	Body importBody
}

var docGetImport = doc{
	id: "getImport", tag: tagChats, summary: "Get the status of an import",
	description: "Also for an ingested conversation, by the `importId` of the response.",
	response:    example(importExample),
	errors:      []int{http.StatusNotFound},
}

func (s *Server) getImport(ctx context.Context, who tenant.Identity, in *getImportInput) (*getImportOutput, error) {
	i, err := s.Imports.Get(ctx, who, in.ImportID)
	if err != nil {
		return nil, err
	}
	return &getImportOutput{Body: newImportBody(i)}, nil
}

type listImportsInput struct {
	Page     string `query:"page"`
	PageSize string `query:"pageSize"`
}

type listImportsOutput struct {
	Body importPageBody
}

type importPageBody struct {
	Items      []importBody `json:"items"`
	Page       int          `json:"page"`
	PageSize   int          `json:"pageSize"`
	Total      int          `json:"total"`
	TotalPages int          `json:"totalPages"`
}

var docListImports = doc{
	id: "listImports", tag: tagChats, summary: "List file imports, newest first",
	description: "Pages of file imports with their progress, newest first.",
	params: []*huma.Param{
		intParam("page", "The page number, starting at 1.", 1, 1, 1),
		upTo(intParam("pageSize", "The page size, at most 100.", chat.DefaultPageSize, 1, 25), chat.MaxPageSize),
	},
	response: example(`{"items":[` + importExample + `],"page":1,"pageSize":25,"total":1,"totalPages":1}`),
	errors:   []int{http.StatusBadRequest},
}

func (s *Server) listImports(ctx context.Context, who tenant.Identity, in *listImportsInput) (*listImportsOutput, error) {
	var p params
	page := p.Integer("page", in.Page, 1, 1)
	size := p.Integer("pageSize", in.PageSize, chat.DefaultPageSize, 1)
	if err := p.Err(); err != nil {
		return nil, err
	}
	list, total, err := s.Imports.List(ctx, who, min((page-1)*size, math.MaxInt32), size)
	if err != nil {
		return nil, err
	}
	out := importPageBody{Items: make([]importBody, len(list)), Page: page, PageSize: size, Total: total, TotalPages: (total + size - 1) / size}
	for n, i := range list {
		out.Items[n] = newImportBody(i)
	}
	return &listImportsOutput{Body: out}, nil
}
