// Package embeddings contains tests that migrate tenants to another embedding model on
// real stores, with real models.
package embeddings
