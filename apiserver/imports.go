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
	Platform   string            `json:"platform" doc:"Empty until it is known."`
	Status     string            `json:"status" enum:"queued,running,done,failed" doc:"Done: all of it is stored and found by words; embeddings follow."`
	Total      int               `json:"total" doc:"Conversations in the file; 0 until they are counted. When it is done, imported, updated, skipped and failed add up to it."`
	Imported   int               `json:"imported" doc:"New ones."`
	Updated    int               `json:"updated" doc:"Ones that gained or changed messages."`
	Skipped    int               `json:"skipped" doc:"Unchanged ones, empty ones, and second copies."`
	Blocked    int               `json:"blocked" doc:"Of those imported or updated, the ones over the quota now: kept, neither searched nor counted."`
	Failed     int               `json:"failed"`
	Errors     []importErrorBody `json:"errors" doc:"Why conversations failed, the first 100 of them, and why the whole file did."`
	StartedAt  string            `json:"startedAt" format:"date-time"`
	FinishedAt *string           `json:"finishedAt" format:"date-time" doc:"Null until it is done or failed."`
	Unchanged  int               `json:"unchanged" doc:"Of those skipped, the ones that were stored already as they are."`
	Indexed    int               `json:"indexed" doc:"How many have nothing left to embed; it counts on towards total when the import is done. Those that failed, were skipped or are blocked have nothing to embed."`
	Warnings   []string          `json:"warnings" doc:"What was left out or made up on the way."`
}

type importErrorBody struct {
	Conversation string `json:"conversation" doc:"Its id on the platform, or its place in the file; empty for the file as a whole."`
	Error        string `json:"error"`
}

func newImportBody(i importer.Import) importBody {
	out := importBody{
		ImportID: i.ID, Platform: i.Platform, Status: string(i.Status), Total: i.Total, Imported: i.Imported, Updated: i.Updated,
		Skipped: i.Skipped, Blocked: i.Blocked, Failed: i.Failed, Errors: make([]importErrorBody, len(i.Errors)),
		StartedAt: chat.Stamp(i.StartedAt), Unchanged: i.Unchanged, Indexed: i.Indexed, Warnings: orEmpty(i.Warnings),
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
	`"warnings":["Skipped messages from abandoned branches: 31."]}`

type getImportInput struct {
	ImportID string `path:"importId" doc:"The import's id." example:"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"`
}

type getImportOutput struct {
	Body importBody
}

var docGetImport = doc{
	id: "getImport", tag: tagChats, summary: "Read how far an import is",
	description: "Also of a conversation sent online, whose `importId` was answered.",
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
	id: "listImports", tag: tagChats, summary: "List the imports of files, newest first",
	params: []*huma.Param{
		intParam("page", "Which page, from 1.", 1, 1, 1),
		upTo(intParam("pageSize", "How many a page, at most 100.", chat.DefaultPageSize, 1, 25), chat.MaxPageSize),
	},
	response: example(`{"items":[` + importExample + `],"page":1,"pageSize":25,"total":1,"totalPages":1}`),
	errors:   []int{http.StatusBadRequest},
}

func (s *Server) listImports(ctx context.Context, who tenant.Identity, in *listImportsInput) (*listImportsOutput, error) {
	var p params
	page := p.integer("page", in.Page, 1, 1)
	size := p.integer("pageSize", in.PageSize, chat.DefaultPageSize, 1)
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
