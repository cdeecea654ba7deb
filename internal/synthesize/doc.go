// Package synthesize answers questions from excerpts of conversations by
// asking a chat model at any OpenAI-compatible endpoint.
package synthesize
