package chat

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
	// ChunkSize is how many bytes each chunk of an uploaded file has but the last.
	ChunkSize = 1 << 20
	// MaxUnfinished is how many imports of a user may be under way.
	MaxUnfinished = 10

	// storeTimeout bounds one statement of an upload, which itself may take as
	// long as its client needs.
	storeTimeout = 30 * time.Second
)

// UploadStore takes files in. internal/postgres implements it. Whatever is not
// finished leaves nothing: the store removes it, after a while at the latest.
type UploadStore interface {
	// BeginUpload returns the id of the import it will be. Forbidden when the
	// storage is used up, RateLimited when too many are under way.
	BeginUpload(ctx context.Context, scope tenant.Scope) (string, error)
	// AppendChunk stores chunk n, from 0. Invalid when the upload is gone.
	AppendChunk(ctx context.Context, scope tenant.Scope, id string, n int, data []byte) error
	// FinishUpload commits the file and the job that imports it and returns the
	// import's id: another one when the request was done before.
	FinishUpload(ctx context.Context, scope tenant.Scope, id string, f UploadedFile) (string, error)
	// DropUpload removes an upload that was not finished.
	DropUpload(ctx context.Context, scope tenant.Scope, id string) error
}

// UploadedFile is what is known of a file when all of it is there.
type UploadedFile struct {
	Size     int64
	Platform string         // the one to read it as; "" to find out
	Request  tenant.Request // the one that sent it, if it may be sent again
}

// Upload is a file on its way into the store. It is not safe for concurrent
// use, and ends with Finish or Drop.
type Upload struct {
	store  UploadStore
	scope  tenant.Scope
	id     string
	chunks int
	size   int64
}

// BeginUpload begins to take a file in. Forbidden when the storage is used up,
// RateLimited when too many of the user's imports are under way.
func (s *Service) BeginUpload(ctx context.Context, who tenant.Identity) (*Upload, error) {
	id, err := s.Uploads.BeginUpload(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("begin upload: %w", err)
	}
	return &Upload{store: s.Uploads, scope: who.Scope, id: id}, nil
}

// ReadFrom stores all that r gives, of which no more than a chunk is held. An
// error that r gave is returned as it is.
func (u *Upload) ReadFrom(ctx context.Context, r io.Reader) (int64, error) {
	buffer := make([]byte, ChunkSize)
	for {
		n, end, err := fill(r, buffer)
		if err != nil {
			return u.size, err
		}
		if n > 0 {
			if err := u.append(ctx, buffer[:n]); err != nil {
				return u.size, fmt.Errorf("store upload: %w", err)
			}
		}
		if end {
			return u.size, nil
		}
	}
}

// fill reads until the buffer is full or r is at its end. Unlike io.ReadFull it
// does not take a reader that breaks off for one that ends.
func fill(r io.Reader, buffer []byte) (n int, end bool, err error) {
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
	if err := u.store.AppendChunk(ctx, u.scope, u.id, u.chunks, data); err != nil {
		return err
	}
	u.chunks++
	u.size += int64(len(data))
	return nil
}

// Finish commits the file with the job that imports it and returns the
// import's id. platform overrules what the file looks like; "" finds out.
func (u *Upload) Finish(ctx context.Context, platform string, r tenant.Request) (string, error) {
	if u.size == 0 {
		return "", fault.New(fault.Invalid, "file must not be empty")
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	id, err := u.store.FinishUpload(ctx, u.scope, u.id, UploadedFile{Size: u.size, Platform: platform, Request: r})
	if err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	return id, nil
}

// Drop removes what was stored of a file that is not finished.
func (u *Upload) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := u.store.DropUpload(ctx, u.scope, u.id); err != nil {
		return fmt.Errorf("drop upload: %w", err)
	}
	return nil
}
