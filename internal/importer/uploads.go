package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// ChunkSize is the size of every chunk of an uploaded file except the last.
	ChunkSize = 1 << 20
	// MaxUnfinished is the maximum number of unfinished imports per user.
	MaxUnfinished = 10

	// storeTimeout limits each statement of an upload.
	storeTimeout = 30 * time.Second
)

// ErrUploadExpired is returned for an upload that paused for too long.
var ErrUploadExpired error = fault.New(fault.Invalid, "the upload paused for too long and was discarded; upload the file again")

// CheckUnfinished returns a RateLimited error if a user with n unfinished imports
// may not start another one.
func CheckUnfinished(n int64) error {
	if n < MaxUnfinished {
		return nil
	}
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute,
		Message: fmt.Sprintf("%d of your imports are not finished; wait until one completes", n)}
}

// UploadStore stores uploaded files. It removes unfinished uploads after a while.
type UploadStore interface {
	// BeginUpload creates an upload and returns the id of its import. Forbidden
	// when the storage quota is exceeded; see CheckUnfinished.
	BeginUpload(ctx context.Context, scope tenant.Scope) (string, error)
	// AppendChunk stores a chunk, unless the stored files then exceed the limits;
	// see UploadLimits.Check. ErrUploadExpired, also if an earlier upload expired.
	AppendChunk(ctx context.Context, scope tenant.Scope, id string, c Chunk, limits UploadLimits) error
	// FinishUploads commits the files of a request and the jobs that import them, and
	// returns the ids of the imports: those of the earlier request if it is a
	// repetition.
	FinishUploads(ctx context.Context, scope tenant.Scope, r UploadRequest) ([]string, error)
	// DeleteUpload removes an unfinished upload.
	DeleteUpload(ctx context.Context, scope tenant.Scope, id string) error
}

// Chunk is a piece of an uploaded file.
type Chunk struct {
	N       int // from 0
	Data    []byte
	Earlier []string // complete uploads of the same request, which must not expire
}

// UploadRequest describes the complete uploads of a request.
type UploadRequest struct {
	Files []UploadedFile
	ImportOptions
	Request tenant.Request // for idempotency
}

// ImportOptions are the options of an import.
type ImportOptions struct {
	Platform    string // "" to detect it
	SkipInvalid bool   // of a Mnemo export: omit invalid lines instead of rejecting the file
}

// UploadedFile describes a complete upload.
type UploadedFile struct {
	ID   string // of its import
	Name string // "" if unknown
	Size int64
}

// Upload is a file that is being uploaded. It is not safe for concurrent use,
// and ends with FinishUploads or Abort.
type Upload struct {
	// Name is the name of the file; "" if unknown.
	Name string

	store   UploadStore
	limits  UploadLimits
	scope   tenant.Scope
	id      string
	earlier []string // ids
	chunks  int
	size    int64
}

// BeginUpload starts an upload. earlier are the complete uploads of the same request,
// which do not expire while this one is received. Forbidden when the storage quota is
// exceeded, RateLimited when the user has too many unfinished imports.
func (s *Service) BeginUpload(ctx context.Context, who tenant.Identity, earlier ...*Upload) (*Upload, error) {
	id, err := s.Uploads.BeginUpload(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("begin upload: %w", err)
	}
	u := &Upload{store: s.Uploads, limits: s.Limits.withDefaults(), scope: who.Scope, id: id}
	for _, e := range earlier {
		u.earlier = append(u.earlier, e.id)
	}
	return u, nil
}

// ReadFrom stores everything that it reads from r, buffering one chunk. It
// returns errors of r unchanged, and Invalid if r is empty.
func (u *Upload) ReadFrom(ctx context.Context, r io.Reader) (int64, error) {
	buffer := make([]byte, ChunkSize)
	for {
		n, end, err := readChunk(r, buffer)
		if err != nil {
			return u.size, err
		}
		if n > 0 {
			if err := u.append(ctx, buffer[:n]); err != nil {
				return u.size, fmt.Errorf("store upload: %w", err)
			}
		}
		if end && u.size == 0 {
			return 0, fault.New(fault.Invalid, "file must not be empty")
		}
		if end {
			return u.size, nil
		}
	}
}

// readChunk reads until the buffer is full or r ends. Unlike io.ReadFull it
// distinguishes the end of r from io.ErrUnexpectedEOF returned by r.
func readChunk(r io.Reader, buffer []byte) (n int, end bool, err error) {
	for n < len(buffer) {
		m, err := r.Read(buffer[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

func (u *Upload) append(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := u.store.AppendChunk(ctx, u.scope, u.id, Chunk{N: u.chunks, Data: data, Earlier: u.earlier}, u.limits); err != nil {
		return err
	}
	u.chunks++
	u.size += int64(len(data))
	return nil
}

// FinishUploads commits the files of a request and the jobs that import them, all or
// none, and returns the ids of the imports in order.
func (s *Service) FinishUploads(ctx context.Context, who tenant.Identity, o ImportOptions, r tenant.Request, uploads ...*Upload) ([]string, error) {
	request := UploadRequest{ImportOptions: o, Request: r}
	for _, u := range uploads {
		request.Files = append(request.Files, UploadedFile{ID: u.id, Name: u.Name, Size: u.size})
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ids, err := s.Uploads.FinishUploads(ctx, who.Scope, request)
	if err != nil {
		return nil, fmt.Errorf("finish uploads: %w", err)
	}
	return ids, nil
}

// Abort removes an unfinished upload.
func (u *Upload) Abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := u.store.DeleteUpload(ctx, u.scope, u.id); err != nil {
		return fmt.Errorf("abort upload: %w", err)
	}
	return nil
}
