package retrieve

import "github.com/mnemo-dev/mnemo/internal/placement"

// Kind is the kind of object a unit is a piece of.
type Kind int16

// The kinds of units, as stored.
const (
	Memory Kind = 1
	Chat   Kind = 2
)

// UnitID is a unit's key in PostgreSQL and in the index. Units are immutable: an edit
// or a move creates new units and deletes the old ones. An index entry therefore
// belongs either to a live unit or to none; it is never stale.
type UnitID int64

// Unit is the searchable piece of text: a part of a memory or of a message that fits
// the model's window.
type Unit struct {
	ID         UnitID // set by the store
	Kind       Kind
	Group      int64  // search filter: a memory's bucket, or GroupOf a chat's platform
	Owner      string // id of the memory or the conversation
	Seq        int    // index of the message in the conversation; 0 for a memory
	Start, End int    // byte range of the piece
	// Lexical is the text in the lexical index: for a chat, the piece with the
	// neighboring messages.
	Lexical string
	// Parts are the texts that Lexical consists of, in order. Units of one
	// conversation share most of them. Empty for a memory.
	Parts []string
	// Dense is the text to embed: for a chat "date sender: piece".
	Dense      string
	Vector     []float32              // embedding of Dense; nil until it is computed
	Generation placement.GenerationID // of Vector
}
