package importer_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// send uploads the first megabytes of a file without finishing it.
func (b *bundle) send(t *testing.T, s *importer.Service, scope tenant.Scope, megabytes int) (*importer.Upload, error) {
	t.Helper()
	u, err := s.BeginUpload(t.Context(), tenant.Identity{Scope: scope})
	if err != nil {
		t.Errorf("begin upload: %v", err)
		return nil, err
	}
	_, err = u.ReadFrom(t.Context(), bytes.NewReader(make([]byte, megabytes<<20)))
	return u, err
}

// stored returns the stored megabytes of files of the first tenant.
func (b *bundle) stored(t *testing.T) int {
	t.Helper()
	var n int
	const sql = "select coalesce(sum(octet_length(data)) >> 20, 0) from import_chunks where tenant_id = $1"
	if err := b.owner.QueryRow(t.Context(), sql, b.alice.Tenant).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A tenant with little storage cannot store a large file until it is imported.
func TestUploadIsLimitedByStorage(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 1 << 20 })
	service := &importer.Service{Uploads: b.imports}
	u, err := b.send(t, service, b.alice, 24)
	quota, ok := errors.AsType[tenant.QuotaExceeded](err)
	if !ok || !fault.Is(err, fault.Forbidden) {
		t.Fatalf("24 MiB in a tenant with 1 MiB of storage: %v, want QuotaExceeded", err)
	}
	if quota.Limit != 16<<20 || quota.Used != 16<<20 {
		t.Errorf("limit %d and usage %d, want 16 MiB each", quota.Limit, quota.Used)
	}
	if n := b.stored(t); n != 16 {
		t.Errorf("%d MiB are stored, want 16", n)
	}
	if _, err := b.send(t, service, b.bob, 1); !fault.Is(err, fault.Forbidden) {
		t.Errorf("upload of another user of the tenant: %v, want Forbidden", err)
	}
	if _, err := b.send(t, service, b.carol, 1); err != nil {
		t.Errorf("upload in another tenant: %v", err)
	}
	if err := u.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.send(t, service, b.bob, 16); err != nil {
		t.Errorf("upload after the other one was deleted: %v", err)
	}
}

// Concurrent uploads do not exceed the limit together.
func TestConcurrentUploadsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 1 << 20 })
	service := &importer.Service{Uploads: b.imports}
	var wg sync.WaitGroup
	for _, scope := range []tenant.Scope{b.alice, b.bob, b.alice, b.bob} {
		wg.Go(func() { _, _ = b.send(t, service, scope, 7) }) // the sum of stored bytes shows refusals
	}
	wg.Wait()
	if n := b.stored(t); n > 16 {
		t.Errorf("%d MiB are stored, want at most 16", n)
	}
}

// A user cannot start more than the maximum number of uploads at the same time.
func TestUnfinishedImportsAreLimitedConcurrently(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	service := &importer.Service{Uploads: b.imports}
	var wg sync.WaitGroup
	var begun, limited atomic.Int64
	for range 4 * importer.MaxUnfinished {
		wg.Go(func() {
			_, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice})
			for fault.Is(err, fault.Unavailable) { // no connection was free in time
				_, err = service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice})
			}
			switch {
			case err == nil:
				begun.Add(1)
			case fault.Is(err, fault.RateLimited):
				limited.Add(1)
			default:
				t.Errorf("begin upload: %v", err)
			}
		})
	}
	wg.Wait()
	if n := begun.Load(); n != importer.MaxUnfinished {
		t.Errorf("%d uploads began, want %d", n, importer.MaxUnfinished)
	}
	if n := limited.Load(); n != 3*importer.MaxUnfinished {
		t.Errorf("%d uploads were limited, want %d", n, 3*importer.MaxUnfinished)
	}
}

// The limits of a user and of the installation are independent of the tenant's quota.
func TestUploadLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		limits importer.UploadLimits
		want   fault.Kind
		bob    bool // whether the other user can upload
	}{
		"user":         {"the other user has the same limit", importer.UploadLimits{User: 2 << 20}, fault.Forbidden, true},
		"installation": {"the files of the first user remain", importer.UploadLimits{Total: 2 << 20}, fault.RateLimited, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			service := &importer.Service{Uploads: b.imports, Limits: tc.limits}
			u, err := b.send(t, service, b.alice, 3)
			if !fault.Is(err, tc.want) {
				t.Errorf("3 MiB with a limit of 2: %v, want %v", err, tc.want)
			}
			if n := b.stored(t); n != 2 {
				t.Errorf("%d MiB are stored, want 2", n)
			}
			for _, scope := range []tenant.Scope{b.bob, b.carol} {
				if _, err := b.send(t, service, scope, 1); (err == nil) != tc.bob {
					t.Errorf("upload of another user: %v; %s", err, tc.reason)
				}
			}
			if err := u.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := b.send(t, service, b.alice, 1); err != nil {
				t.Errorf("upload after the first one was deleted: %v", err)
			}
		})
	}
}

// A complete file of a request does not expire while the next one is received. If it has,
// the request fails.
func TestEarlierFilesOfARequest(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	service, who := &importer.Service{Uploads: b.imports}, tenant.Identity{Scope: b.alice}
	data := export(t, conversations(1))
	begin := func(earlier ...*importer.Upload) *importer.Upload {
		t.Helper()
		u, err := service.BeginUpload(t.Context(), who, earlier...)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	expire := func() {
		t.Helper()
		if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second' where status = 'uploading'"); err != nil {
			t.Fatal(err)
		}
	}
	first := begin()
	if _, err := first.ReadFrom(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	second := begin(first)
	expire()
	if _, err := second.ReadFrom(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := b.owner.QueryRow(t.Context(), "select count(*) from imports where leased_until > now()").Scan(&left); err != nil || left != 2 {
		t.Errorf("%d uploads are extended, %v, want 2", left, err)
	}
	ids, err := service.FinishUploads(t.Context(), who, importer.ImportOptions{}, tenant.Request{}, first, second)
	if err != nil || len(ids) != 2 {
		t.Fatalf("FinishUploads = %v, %v", ids, err)
	}
	third := begin()
	if _, err := third.ReadFrom(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	fourth := begin(third)
	if err := third.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := fourth.ReadFrom(t.Context(), bytes.NewReader(data)); !errors.Is(err, importer.ErrUploadExpired) {
		t.Errorf("ReadFrom after an earlier file expired: %v", err)
	}
}

// An import releases the bytes of its file.
func TestImportReleasesItsFile(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	data := export(t, conversations(3))
	service := &importer.Service{Uploads: b.imports, Limits: importer.UploadLimits{User: int64(len(data))}}
	for range 2 {
		u, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.ReadFrom(t.Context(), bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		ids, err := service.FinishUploads(t.Context(), tenant.Identity{Scope: b.alice}, importer.ImportOptions{}, tenant.Request{}, u)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.run(t, b.alice, ids[0]); got.Status != importer.Done {
			t.Errorf("the import is %s", got.Status)
		}
	}
}
