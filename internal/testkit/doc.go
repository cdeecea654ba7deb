// Package testkit gives tests the addresses of real dependencies, which hack/test
// starts or builds: PostgreSQL, Milvus, a Kubernetes control plane, the embedding model,
// a browser and mnemo itself.
//
// A test fails if a dependency is missing. It never skips, so a green run means
// that everything was tested.
package testkit
