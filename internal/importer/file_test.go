package importer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A file is read from its chunks as it was sent, at any place.
func TestFileIsReadAsSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3*chat.ChunkSize+12345)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	id := b.upload(t, b.alice, data, "")
	if n := b.count(t, "import_chunks where import_id = $1", id); n != 4 {
		t.Errorf("it has %d chunks, want 4", n)
	}
	_, err := b.runner(func(c *importer.Config) {
		c.Archive = func(_ context.Context, _ chat.ImportRun, file io.ReaderAt) (bool, []string, error) {
			whole := bytes.NewReader(data)
			for range 300 {
				got, want := make([]byte, r.IntN(3000)), []byte{}
				off := r.Int64N(int64(len(data)) + 100)
				if r.IntN(3) == 0 { // about a border
					off = int64(1+r.IntN(3))*chat.ChunkSize - r.Int64N(1000)
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

// An upload that was not finished leaves nothing, and is nobody's to see.
func TestHalfUpload(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	service := chat.NewService(chat.Config{Uploads: b.chats})
	begin := func() string {
		t.Helper()
		id, err := b.chats.BeginUpload(t.Context(), b.alice)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.chats.AppendChunk(t.Context(), b.alice, id, 0, []byte("half")); err != nil {
			t.Fatal(err)
		}
		return id
	}
	dropped, abandoned := begin(), begin()
	if _, err := b.GetImport(t.Context(), b.alice, dropped); !fault.Is(err, fault.NotFound) {
		t.Errorf("an upload is seen before it is an import: %v", err)
	}
	if _, n, err := b.ListImports(t.Context(), b.alice, 0, 10); err != nil || n != 0 {
		t.Errorf("%d are listed, %v", n, err)
	}
	if err := b.chats.DropUpload(t.Context(), b.bob, dropped); err != nil || b.count(t, "imports") != 2 {
		t.Errorf("another user drops it: %v", err)
	}
	if err := b.chats.DropUpload(t.Context(), b.alice, dropped); err != nil {
		t.Fatal(err)
	}
	// Its job looks after the one whose replica died.
	if again, err := b.runner().Run(t.Context(), args(b.alice, abandoned)); err != nil || again == 0 {
		t.Errorf("an upload that may still go on: %s, %v", again, err)
	}
	if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	if again, err := b.runner().Run(t.Context(), args(b.alice, abandoned)); err != nil || again != 0 {
		t.Errorf("an upload that was abandoned: %s, %v", again, err)
	}
	if n := b.count(t, "imports") + b.count(t, "import_chunks"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if err := b.chats.AppendChunk(t.Context(), b.alice, abandoned, 1, []byte("late")); !fault.Is(err, fault.Invalid) {
		t.Errorf("it goes on after that: %v", err)
	}
	for range chat.MaxUnfinished {
		begin()
	}
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("too many at once: %v", err)
	}
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.bob}); err != nil {
		t.Errorf("another user's: %v", err)
	}
}
