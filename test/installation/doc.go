// Package installation runs Mnemo for a test as on a host: the program as processes, with
// the operator's service account and exactly its permissions in a new namespace, a new
// database and new collections.
package installation
