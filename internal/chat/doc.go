// Package chat is the domain of chat history: conversations, their messages,
// the states a quota puts them in, and finding a passage again.
package chat
