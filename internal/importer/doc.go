// Package importer runs imports: it reads an uploaded file from the store it was
// taken into, and has its conversations stored batch by batch, each with its row
// of the ledger. Whatever was not committed when a worker dies is done again by
// the next one, on any replica; nothing is done twice.
//
// The formats are internal/chatexport's business, what storing a conversation
// means is internal/chat's and its store's.
package importer
