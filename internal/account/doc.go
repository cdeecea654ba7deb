// Package account exports, restores and deletes everything one user owns.
package account
