package retrieve

import "time"

// Kind says what a unit is a piece of.
type Kind int16

// The kinds of units, as stored.
const (
	Memory Kind = 1
	Chat   Kind = 2
)

// UnitID is a unit's key in PostgreSQL and in the index. A unit never changes:
// an edit or a move makes new units and removes the old ones, so that an entry
// of the index is either that of a live unit or rubbish, never stale.
type UnitID int64

// Unit is a piece of text that is found as one: a part of a memory or of a
// message, at most a model's window long.
type Unit struct {
	ID    UnitID // given by the store
	Kind  Kind
	Group int64 // what a search may be narrowed to: a memory's bucket, GroupOf a chat's platform
	// Owner is the memory's or the conversation's id; Seq the message's index
	// in it (0 for a memory); Start and End the piece's place in the text, bytes.
	Owner      string
	Seq        int
	Start, End int
	// Lexical is the text the lexical index holds: for a chat the message with
	// its two neighbours on either side.
	Lexical string
	// Parts are what Lexical is made of, in order: units of one conversation
	// share most of theirs. None for a memory.
	Parts []string
	// Dense is the text to embed: for a chat "date sender: piece".
	Dense string
	// Vector is the embedding of Dense, nil until there is one.
	Vector []float32
}

// Entry is a unit as the index holds it.
type Entry struct {
	ID     UnitID
	User   int64
	Kind   Kind
	Group  int64
	Vector []float32
}

// Query is a question to the stores.
type Query struct {
	Kind  Kind
	Text  string
	Group int64     // 0 for all
	From  time.Time // only units of owners created at or after; zero for open
	To    time.Time // only units of owners created before; zero for open
	// After and Before narrow chats to messages written at or after the one and
	// before the other; zero for open. Memories are not narrowed by them.
	After, Before time.Time
	// Window is the time the question is about: messages of it are preferred,
	// others are still found. Zero for none. Only the Engine reads it.
	Window Window
	Limit  int // candidates wanted, at least 1
}

// Hit is a unit found by one of the searches, with that search's own score:
// higher is better, cosine (-1 to 1) for dense ones, unbounded for lexical.
type Hit struct {
	ID    UnitID
	Score float64
}

// Found is a unit that the fused ranking holds.
type Found struct {
	ID    UnitID
	Owner string
	Seq   int
	Start int
	End   int
	At    time.Time // when a chat's message was written; zero for a memory
	Score float64   // 0 to 1, comparable within one Result
}

// Result is a fused ranking, best first.
type Result struct {
	Found []Found
	// Degraded says that the vector store or the embedder was away, that not
	// all recent units could be looked at, or that some have no vector yet.
	Degraded bool
}
