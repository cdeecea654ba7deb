// Package synthesize answers questions from excerpts of conversations with a
// chat model at any OpenAI-compatible endpoint.
package synthesize
