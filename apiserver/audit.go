package apiserver

import (
	"bytes"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	mediaLines = "application/x-ndjson"
	// maxAuditRecords is the maximum number of audit records of a response.
	maxAuditRecords = 1000
)

type listAuditInput struct {
	After string `query:"after"`
	Count string `query:"count"`
}

type listAuditOutput struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	Body               []byte
}

var docListAudit = doc{
	id: "listAuditRecords", tag: tagAccount, summary: "List the audit records of the user's data",
	description: "Returns JSON Lines, oldest first: a header, one line per change (who, what, which ids and when), and a footer. " +
		"Records contain no content. `mnemo audit verify` checks the file offline for edited, dropped and reordered lines. " +
		"Records are kept for 365 days. The next page begins after the `last` of the footer; the last page has no records.",
	params: []*huma.Param{
		intParam("after", "Only records with a greater `seq`.", 0, 0, 0),
		intParam("count", "The number of records. Values above 1000 are treated as 1000.", maxAuditRecords, 1, 100),
	},
	file:   mediaLines,
	errors: []int{http.StatusBadRequest},
}

func (s *Server) listAudit(ctx context.Context, who tenant.Identity, in *listAuditInput) (*listAuditOutput, error) {
	var p params
	after := p.Integer("after", in.After, 0, 0)
	count := min(p.Integer("count", in.Count, maxAuditRecords, 1), maxAuditRecords)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if err := audit.SealForReader(ctx, s.Audit, who.Tenant); err != nil {
		return nil, err
	}
	records, err := s.Audit.UserRecords(ctx, who.Scope, int64(after), count)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	w := audit.NewWriter(&file, audit.Header{Tenant: who.Tenant, User: true, After: int64(after)})
	for _, r := range records {
		if err := w.Write(r); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &listAuditOutput{ContentType: mediaLines, ContentDisposition: `attachment; filename="mnemo-audit.jsonl"`, Body: file.Bytes()}, nil
}
