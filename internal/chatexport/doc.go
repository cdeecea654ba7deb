// Package chatexport reads the data exports of chat platforms: ChatGPT and
// Claude, as JSON, as zips, split into parts, and zips in zips. It is pure: it
// stores nothing, knows no clock, and gives the same conversations in the same
// order for the same file, so that an import can be taken up again.
//
// [Open] reads the whole file once: what is wrong with the file as a whole is
// known before anything of it is stored. [Export.Conversations] then gives one
// conversation at a time. Memory does not grow with the file: what is held is
// one conversation (at most [Limits].Conversation bytes of JSON) and a few
// bytes for each conversation's id.
//
// The formats are described in docs/import-formats.md.
package chatexport
