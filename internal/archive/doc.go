// Package archive writes and reads the file a user takes an account out with:
// a zip of JSON Lines, described in docs/export-format.md. It is pure: it
// stores nothing and knows no clock.
//
// [Write] streams, so that memory does not grow with the account. [Open] reads
// a whole file once, which may come from anybody: what is wrong with it is
// known before anything of it is stored. Its content can then be read again,
// one record at a time.
package archive
