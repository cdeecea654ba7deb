// Package importer imports uploaded files: it reads a file from the store and
// stores its conversations in batches, each with its rows of the import's
// ledger. After a worker dies, another one on any replica resumes the import;
// the ledger ensures that no conversation is imported twice.
//
// internal/chatexport parses the files; internal/chat defines how a conversation
// is merged into a stored one.
package importer
