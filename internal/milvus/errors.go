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
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// ErrNoPartition is in the error chain of a call on a partition or collection that does
// not exist. Ensure creates it again.
var ErrNoPartition = placement.ErrNoPartition

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

// statusError is an error status returned by Milvus.
type statusError struct {
	code   int32
	reason string
}

func (e *statusError) Error() string { return fmt.Sprintf("milvus code %d: %s", e.code, e.reason) }

// keepStatus converts an error status in a response into an error with its code, which
// the SDK would drop.
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

// partitionNotFound matches the reason that searches of 2.3 return without a code:
// "partition name p_1 not found".
var partitionNotFound = regexp.MustCompile(`partition( name)? \S*\s?not found`)

// codeOf returns the status's code, converted if only the legacy code is set.
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

// isCode reports whether err is a status with one of the codes.
func isCode(err error, codes ...int32) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && slices.Contains(codes, e.code)
}

// mapError maps an SDK error to its kind: Internal for an invalid request, which is a
// bug, and Unavailable for all others.
func mapError(err error, doing string) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	switch e, ok := errors.AsType[*statusError](err); {
	case ok && (e.code == codeCollectionNotFound || e.code == codePartitionNotFound):
		err = fmt.Errorf("%w: %w", ErrNoPartition, err)
	case ok && e.code >= codeParameterInvalid && e.code <= codeParameterLast, isOtherLength(err):
		return fault.Wrap(fault.Internal, err, "Milvus rejected the request")
	case status.Code(err) == codes.Unauthenticated:
		return fault.Wrap(fault.Unavailable, err, "Milvus rejected the user name or password; check the credentials")
	}
	return fault.Wrap(fault.Unavailable, explain(err), "the vector store is unavailable")
}

// isOtherLength reports whether a vector is not as long as those of the collection. The
// SDK and the server report it without a code.
func isOtherLength(err error) bool {
	said := err.Error()
	return strings.Contains(said, "not match collection definition") || strings.Contains(said, "vector dimension mismatch") ||
		strings.Contains(said, "dimension of the vector")
}

// explain adds a hint for TLS errors. The client library only keeps the text of the
// cause.
func explain(err error) error {
	var hint string
	switch said := err.Error(); {
	case strings.Contains(said, "x509: "):
		hint = "certificate not trusted: check the host in MILVUS_ADDRESS and MILVUS_CA (milvus.address and milvus.tls in the chart)"
	case strings.Contains(said, "first record does not look like a TLS handshake"):
		hint = "the server does not use TLS: set MILVUS_ADDRESS without https:// and no MILVUS_CA (milvus.tls.enabled in the chart)"
	case strings.Contains(said, "error reading server preface"):
		hint = "the server may require TLS: set MILVUS_ADDRESS to https://host:port (milvus.tls.enabled in the chart)"
	default:
		return err
	}
	return fmt.Errorf("%s: %w", hint, err)
}

// isEmpty reports whether the error is how the SDK reports an empty result.
func isEmpty(err error) bool {
	return err != nil && strings.Contains(err.Error(), "extra output fields")
}
