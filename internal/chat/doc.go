// Package chat is the domain of chat history: conversations and their messages,
// how new messages merge into stored ones, which conversations count against
// the quota, and how passages are found again.
package chat
