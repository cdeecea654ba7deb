package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// toAttributes returns the attributes in the columns of a memory. PostgreSQL formats
// metadata with spaces and in its own order of keys.
func toAttributes(agent, run string, tags []string, metadata []byte) (memory.Attributes, error) {
	out := memory.Attributes{AgentID: agent, RunID: run}
	if len(tags) > 0 {
		out.Tags = tags
	}
	var err error
	if out.Metadata, err = memory.CanonicalMetadata(metadata); err != nil {
		return memory.Attributes{}, fmt.Errorf("read metadata: %w", err)
	}
	return out, nil
}

// metadataColumn returns the value of the column metadata, which is never null.
func metadataColumn(m json.RawMessage) []byte {
	if m == nil {
		return []byte("{}")
	}
	return m
}

// orEmpty returns a list that is not null in SQL.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// setAttributes changes the attributes of a locked memory, charges the difference, and
// reports whether they changed.
func setAttributes(ctx context.Context, q *db.Queries, scope tenant.Scope, id string, before db.LockMemoryRow, c memory.AttributeChanges) (bool, error) {
	old, err := toAttributes(before.AgentID, before.RunID, before.Tags, before.Metadata)
	if err != nil {
		return false, err
	}
	to := c.Apply(old)
	if to.Equal(old) {
		return false, nil
	}
	reserve(q, scope, 0, int64(to.Size())-int64(before.AttributeBytes), 0)
	err = q.SetMemoryAttributes(ctx, db.SetMemoryAttributesParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, AgentID: to.AgentID, RunID: to.RunID,
		Tags: orEmpty(to.Tags), Metadata: metadataColumn(to.Metadata), AttributeBytes: integer(to.Size()),
	})
	if err != nil {
		return false, fmt.Errorf("set attributes: %w", err)
	}
	return true, nil
}
