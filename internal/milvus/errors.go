package milvus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// ErrNoPartition is in the chain of the error of a call on a partition, or a
// collection, that Milvus does not have. Ensure makes it again.
var ErrNoPartition = retrieve.ErrNoPartition

// Milvus' error codes, from its package merr.
const (
	codeCollectionNotFound = 100
	codeNotLoaded          = 101
	codeNotFullyLoaded     = 103
	codePartitionNotFound  = 200
	codeIndexNotFound      = 700
	codeParameterInvalid   = 1100
	codeParameterLast      = 1199
)

// statusError is a failure Milvus answered, with its code.
type statusError struct {
	code   int32
	reason string
}

func (e *statusError) Error() string { return fmt.Sprintf("milvus code %d: %s", e.code, e.reason) }

// keepStatus turns a failure in an answer's body into an error that keeps its
// code, which the SDK would drop.
func keepStatus(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, req, reply, conn, options...); err != nil {
		return err
	}
	var s *commonpb.Status
	switch r := reply.(type) {
	case *commonpb.Status:
		s = r
	case interface{ GetStatus() *commonpb.Status }:
		s = r.GetStatus()
	}
	//nolint:staticcheck // servers before 2.3 and some calls of 2.3 set only the old code
	if s.GetCode() == 0 && s.GetErrorCode() == commonpb.ErrorCode_Success {
		return nil
	}
	return &statusError{code: codeOf(s), reason: s.GetReason()}
}

// partitionNotFound recognises what searches of 2.3 answer without a code:
// "partition name p_1 not found".
var partitionNotFound = regexp.MustCompile(`partition( name)? \S*\s?not found`)

// codeOf returns the status's code, translated where only the old one is set.
func codeOf(s *commonpb.Status) int32 {
	//nolint:staticcheck // see keepStatus
	old := s.GetErrorCode()
	switch {
	case old == commonpb.ErrorCode_CollectionNotExists, strings.Contains(s.GetReason(), "collection not found"):
		return codeCollectionNotFound
	case partitionNotFound.MatchString(s.GetReason()):
		return codePartitionNotFound
	case old == commonpb.ErrorCode_IndexNotExist:
		return codeIndexNotFound
	case old == commonpb.ErrorCode_IllegalArgument && s.GetCode() == 0:
		return codeParameterInvalid
	default:
		return s.GetCode()
	}
}

// isCode reports whether Milvus answered with one of the codes.
func isCode(err error, codes ...int32) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && slices.Contains(codes, e.code)
}

// mapError gives an error of the SDK its kind: Internal when the request was
// wrong, which is a bug, and Unavailable for all else.
func mapError(err error, doing string) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	switch e, ok := errors.AsType[*statusError](err); {
	case ok && (e.code == codeCollectionNotFound || e.code == codePartitionNotFound):
		err = fmt.Errorf("%w: %w", ErrNoPartition, err)
	case ok && e.code >= codeParameterInvalid && e.code <= codeParameterLast:
		return fault.Wrap(fault.Internal, err, "Milvus refused the request")
	case status.Code(err) == codes.Unauthenticated:
		return fault.Wrap(fault.Unavailable, err, "Milvus refused the user name or password: check its credentials")
	}
	return fault.Wrap(fault.Unavailable, explain(err), "the vector store is away")
}

// explain says in the log what to do about a connection that TLS is in the way
// of. The client library leaves no more of the cause than its text.
func explain(err error) error {
	var hint string
	switch said := err.Error(); {
	case strings.Contains(said, "x509: "):
		hint = "its certificate cannot be trusted: check the host in MILVUS_ADDRESS and MILVUS_CA (milvus.address and milvus.tls of the chart)"
	case strings.Contains(said, "first record does not look like a TLS handshake"):
		hint = "it speaks no TLS: MILVUS_ADDRESS without https:// and no MILVUS_CA is for that (milvus.tls.enabled of the chart)"
	case strings.Contains(said, "error reading server preface"):
		hint = "it may speak TLS only: MILVUS_ADDRESS is https://host:port then (milvus.tls.enabled of the chart)"
	default:
		return err
	}
	return fmt.Errorf("%s: %w", hint, err)
}

// isEmpty reports whether the error is how the SDK tells of an empty answer.
func isEmpty(err error) bool {
	return err != nil && strings.Contains(err.Error(), "extra output fields")
}
