package apiserver

import (
	"cmp"
	"context"
	"strconv"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f fakeChats) GetImport(_ context.Context, scope tenant.Scope, id string) (importer.Import, error) {
	u, end, err := f.begin(scope)
	defer end()
	for _, i := range u.imports {
		if i.ID == id {
			return i, err
		}
	}
	return importer.Import{}, cmp.Or[error](err, fault.New(fault.NotFound, "import %s", id))
}

// ListImports omits ingested conversations, like the real store.
func (f fakeChats) ListImports(_ context.Context, scope tenant.Scope, offset, limit int) ([]importer.Import, int, error) {
	u, end, err := f.begin(scope)
	defer end()
	var list []importer.Import
	for _, i := range u.imports {
		if i.Status == importer.Queued {
			list = append([]importer.Import{i}, list...)
		}
	}
	page := list[min(offset, len(list)):]
	return page[:min(limit, len(page))], len(list), err
}

func (f fakeChats) BeginUpload(_ context.Context, scope tenant.Scope) (string, error) {
	_, end, err := f.begin(scope)
	defer end()
	f.seq++
	return "i-" + strconv.FormatInt(f.seq, 10), err
}

func (f fakeChats) AppendChunk(_ context.Context, scope tenant.Scope, id string, c importer.Chunk, _ importer.UploadLimits) error {
	_, end, err := f.begin(scope)
	defer end()
	f.chunks[id] = append(f.chunks[id], c.Data...)
	if c.N != (len(f.chunks[id])-1)/importer.ChunkSize {
		return fault.New(fault.Internal, "chunk %d is out of order", c.N)
	}
	return err
}

func (f fakeChats) FinishUploads(_ context.Context, scope tenant.Scope, r importer.UploadRequest) (ids []string, err error) {
	u, end, err := f.begin(scope)
	defer end()
	f.requested = r.Request
	for _, file := range r.Files {
		if int(file.Size) != len(f.chunks[file.ID]) {
			return nil, fault.New(fault.Internal, "%d bytes of %d", len(f.chunks[file.ID]), file.Size)
		}
		ids = append(ids, file.ID)
		u.imports = append(u.imports, importer.Import{ID: file.ID, File: file.Name, Platform: r.Platform, Status: importer.Queued, StartedAt: noon, Version: 1})
	}
	return ids, err
}

func (f fakeChats) DeleteUpload(_ context.Context, scope tenant.Scope, id string) error {
	_, end, err := f.begin(scope)
	defer end()
	delete(f.chunks, id)
	return err
}

// chunk returns the stored bytes of an import's file.
func (f *fakeStores) chunk(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.chunks[id])
}

// uploads returns the number of stored files.
func (f *fakeStores) uploads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.chunks)
}

// lastRequest returns the idempotency record of the last upload.
func (f *fakeStores) lastRequest() tenant.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requested
}

// change modifies an import.
func (f *fakeStores) change(id string, change func(*importer.Import)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.users {
		for i := range u.imports {
			if u.imports[i].ID == id {
				change(&u.imports[i])
			}
		}
	}
}
