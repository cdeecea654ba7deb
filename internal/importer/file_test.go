package importer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A file can be read at any offset, within and across chunks.
func TestFileReadAt(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3*importer.ChunkSize+12345)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	id := b.upload(t, b.alice, data, "")
	if n := b.count(t, "import_chunks where import_id = $1", id); n != 4 {
		t.Errorf("%d chunks, want 4", n)
	}
	_, err := b.runner(func(c *importer.Config) {
		c.Archive = func(_ context.Context, _ importer.Run, file io.ReaderAt) (bool, []string, error) {
			whole := bytes.NewReader(data)
			for range 300 {
				got, want := make([]byte, r.IntN(3000)), []byte{}
				off := r.Int64N(int64(len(data)) + 100)
				if r.IntN(3) == 0 { // near a chunk boundary
					off = int64(1+r.IntN(3))*importer.ChunkSize - r.Int64N(1000)
				}
				want = append(want, make([]byte, len(got))...)
				n, err := file.ReadAt(got, off)
				m, wantErr := whole.ReadAt(want, off)
				if n != m || !errors.Is(err, wantErr) || !bytes.Equal(got, want) {
					t.Fatalf("ReadAt(%d, %d) = %d, %v; want %d, %v", len(got), off, n, err, m, wantErr)
				}
			}
			return true, nil, nil
		}
	}).Run(t.Context(), args(b.alice, id))
	if err != nil {
		t.Fatal(err)
	}
}

// An unfinished upload is invisible and is removed.
func TestUnfinishedUpload(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	service := &importer.Service{Uploads: b.imports}
	begin := func() string {
		t.Helper()
		id, err := b.imports.BeginUpload(t.Context(), b.alice)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.imports.AppendChunk(t.Context(), b.alice, id, importer.Chunk{Data: []byte("half")}, importer.DefaultUploadLimits); err != nil {
			t.Fatal(err)
		}
		return id
	}
	deleted, expired := begin(), begin()
	if _, err := b.GetImport(t.Context(), b.alice, deleted); !fault.Is(err, fault.NotFound) {
		t.Errorf("Get of an unfinished upload: %v, want NotFound", err)
	}
	if _, n, err := b.ListImports(t.Context(), b.alice, 0, 10); err != nil || n != 0 {
		t.Errorf("%d imports are listed, %v; want 0", n, err)
	}
	if err := b.imports.DeleteUpload(t.Context(), b.bob, deleted); err != nil || b.count(t, "imports") != 2 {
		t.Errorf("another user deleted the upload: %v", err)
	}
	if err := b.imports.DeleteUpload(t.Context(), b.alice, deleted); err != nil {
		t.Fatal(err)
	}
	// The job of an upload deletes it when its lease expires.
	if again, err := b.runner().Run(t.Context(), args(b.alice, expired)); err != nil || again == 0 {
		t.Errorf("Run before the upload expires = %s, %v", again, err)
	}
	if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	if again, err := b.runner().Run(t.Context(), args(b.alice, expired)); err != nil || again != 0 {
		t.Errorf("Run after the upload expired = %s, %v", again, err)
	}
	if n := b.count(t, "imports") + b.count(t, "import_chunks"); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
	if err := b.imports.AppendChunk(t.Context(), b.alice, expired, importer.Chunk{N: 1, Data: []byte("late")}, importer.DefaultUploadLimits); !fault.Is(err, fault.Invalid) {
		t.Errorf("AppendChunk to an expired upload: %v, want Invalid", err)
	}
	for range importer.MaxUnfinished {
		begin()
	}
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("BeginUpload beyond the limit: %v, want RateLimited", err)
	}
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.bob}); err != nil {
		t.Errorf("BeginUpload of another user: %v", err)
	}
}
