// Package chatexport parses the data exports of ChatGPT, Claude, Gemini and other
// assistants: JSON, JSON lines, CSV and HTML, in zips, split and nested zips, gzip and
// tar. It is deterministic: the same file yields the same conversations in the same
// order, so that an import can be resumed.
//
// A format is a row of the table in formats.go: the members by which a JSON value is
// detected, and a reader for it. Other syntaxes are converted to JSON while they are
// read.
//
// [Open] reads the whole file once, so that errors of the file are reported before
// anything is stored. [Export.Conversations] then yields one conversation at a
// time. Memory does not grow with the size of the file: it holds one conversation
// (at most [Limits].Conversation bytes of JSON) and a few bytes per id.
//
// The formats are described in docs/import-formats.md.
package chatexport
