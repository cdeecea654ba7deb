// Package extract extracts facts from messages with a chat model and stores them as memories,
// in a background job.
package extract
