package retrieve

import "errors"

// refusal is implemented by errors of an Embedder or a Reranker that can be due to one of the
// texts. Other errors are due to the endpoint or its configuration.
type refusal interface {
	error
	Refused() bool
}

// IsRefused reports whether an Embedder or a Reranker failed because of one of the texts.
func IsRefused(err error) bool {
	r, ok := errors.AsType[refusal](err)
	return ok && r.Refused()
}
