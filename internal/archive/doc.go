// Package archive reads and writes account exports: a zip of JSON Lines, described in
// docs/export-format.md. It has no state and uses no clock.
//
// [Write] streams, so memory usage does not depend on the size of the account. [Open]
// validates a whole untrusted file before anything is stored. Its content can then
// be read again, one record at a time.
package archive
