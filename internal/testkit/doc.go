// Package testkit tells tests where the real parts run: PostgreSQL, Milvus, a
// Kubernetes control plane, the embedding model and a browser, as brought by
// hack/test.
//
// A test that asks for a part that is not there fails, it never skips: a green
// run always means that everything was tested.
package testkit
