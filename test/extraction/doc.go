// Package extraction tests that facts which a chat model extracts from the messages of an
// unmodified mem0 client are found. The chat endpoint computes its answers from the prompt.
package extraction
