// Package secrettest searches everything that a run leaves behind for the secrets that
// it created.
package secrettest
