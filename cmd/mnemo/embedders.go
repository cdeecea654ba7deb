package main

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// embedders opens the configured models. It returns Invalid if the database contains
// vectors of another one. counts may be nil.
func (f embedderFlags) embedders(ctx context.Context, s *stores, counts *telemetry.Metrics) (retrieve.Embedders, error) {
	g, err := f.generation()
	if err != nil {
		return nil, err
	}
	id, err := s.db.EnsureGeneration(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := s.db.CheckGenerations(ctx, id); err != nil {
		return nil, err
	}
	e, err := f.open()
	if err != nil {
		return nil, err
	}
	if counts != nil {
		e = counts.Embedder(e)
	}
	if f.Embedder != "local" { // a local model is verified by its checksum
		e = retrieve.Guard(e, id, s.db)
	}
	return retrieve.Embedders{id: e}, nil
}
