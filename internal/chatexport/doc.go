// Package chatexport parses the data exports of ChatGPT and Claude: JSON files,
// zips, split zips and nested zips. It is deterministic: the same file yields the
// same conversations in the same order, so that an import can be resumed.
//
// [Open] reads the whole file once, so that errors of the file are reported before
// anything is stored. [Export.Conversations] then yields one conversation at a
// time. Memory does not grow with the size of the file: it holds one conversation
// (at most [Limits].Conversation bytes of JSON) and a few bytes per id.
//
// The formats are described in docs/import-formats.md.
package chatexport
