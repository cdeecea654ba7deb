package audit

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Export seals the pending records of a tenant and writes its file. It verifies what it
// writes and returns an error if the stored chain was tampered with; the file is then not
// to be trusted.
func Export(ctx context.Context, s Store, id tenant.ID, to io.Writer) error {
	if err := s.SealRecords(ctx, id, true); err != nil {
		return err
	}
	return s.TenantRecords(ctx, id, func(head Head, all iter.Seq2[Record, error]) error {
		r, pipe := io.Pipe()
		verified := make(chan error, 1)
		go func() {
			var anchors []Anchor
			if head.Sequence > 0 {
				anchors = append(anchors, Anchor(head))
			}
			_, err := Verify(r, anchors...)
			_ = r.CloseWithError(err) // always nil
			verified <- err
		}()
		err := writeAll(NewWriter(io.MultiWriter(to, pipe), Header{Tenant: id}), all)
		_ = pipe.CloseWithError(err) // always nil
		if wrong := <-verified; wrong != nil {
			return fmt.Errorf("the stored chain is not valid: %w", wrong)
		}
		return err
	})
}

func writeAll(w *Writer, all iter.Seq2[Record, error]) error {
	for r, err := range all {
		if err != nil {
			return err
		}
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return w.Close()
}
