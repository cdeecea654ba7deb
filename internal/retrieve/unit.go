package retrieve

import (
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

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
	ID    UnitID // set by the store
	Kind  Kind
	Group int64 // search filter: a memory's bucket, or GroupOf a chat's platform
	// Owner is the memory's or the conversation's id; Seq the message's index
	// in it (0 for a memory); Start and End are the byte range of the piece.
	Owner      string
	Seq        int
	Start, End int
	// Lexical is the text in the lexical index: for a chat, the piece with the
	// neighboring messages.
	Lexical string
	// Parts are the texts that Lexical consists of, in order. Units of one
	// conversation share most of them. Empty for a memory.
	Parts []string
	// Dense is the text to embed: for a chat "date sender: piece".
	Dense string
	// Vector is the embedding of Dense; nil until it is computed. Generation is the
	// generation of the vector.
	Vector     []float32
	Generation placement.GenerationID
}

// Query is a search query.
type Query struct {
	Kind  Kind
	Text  string
	Group int64     // 0 for all
	From  time.Time // owner created at or after; zero for unbounded
	To    time.Time // owner created before; zero for unbounded
	// Where selects memories. The Engine resolves it to Owners, if they are not too many.
	Where filter.Filter
	// Owners restricts Lexical and Exact to units of these memories, unless it is nil.
	Owners []string
	broad  bool // Where matches more memories than Owners; only the Engine uses it
	// Few makes Exact score all units, which Searcher.Few must have allowed. The Engine sets it.
	Few bool
	// Unindexed makes Exact score all units, however many: no index contains them. The Engine sets it.
	Unindexed bool
	// After and Before restrict chats to messages written at or after the first and
	// before the second; zero for unbounded. Memories ignore them.
	After, Before time.Time
	// Window is the time the query is about. Messages inside are preferred, not
	// required. Zero for none. Only the Engine uses it.
	Window Window
	// Zone is the time zone of dates in Text; nil for UTC. Only the Engine uses it.
	Zone *time.Location
	// Generation selects the vectors and the model that embeds Text.
	Generation placement.GenerationID
	// Ranking selects the searches to run; "" for Fused. Only the Engine uses it.
	Ranking Ranking
	// SkipRerank keeps the order of the reranker's input. Only the Engine uses it.
	SkipRerank bool
	// MinScore is the score below which results are omitted; nil for DefaultMinScore. It only
	// applies to calibrated scores. Only the Engine uses it.
	MinScore *float64
	Limit    int // number of candidates, at least 1
}

// Ranking is a way to rank units. The parts of the fused ranking exist to measure it.
type Ranking string

// The rankings.
const (
	Fused   Ranking = "fused"
	Lexical Ranking = "lexical"
	Dense   Ranking = "dense"
)

// Hit is a result of one search with its score. Higher is better: cosine (-1 to 1) for
// dense search, unbounded for lexical search.
type Hit struct {
	ID    UnitID
	Score float64
}

// Found is a unit in the fused ranking.
type Found struct {
	ID    UnitID
	Owner string
	Seq   int
	Start int
	End   int
	At    time.Time // time of the message; zero for a memory
	// Superseded reports that the memory is linked to a newer one. The link may be newer than Query.To, and the newer memory may be deleted.
	Superseded bool
	Score      float64 // 0 to 1; see Result.Calibrated
}

// Similar is a unit that is similar to a text.
type Similar struct {
	Owner      string
	Text       string
	Similarity float64 // 0 for unrelated and 1 for equal texts, with any model
}

// Result is a fused ranking, best first.
type Result struct {
	Found []Found
	// Calibrated reports that scores are probabilities of being relevant, comparable
	// between queries. Otherwise they are comparable only within the Result: the
	// ranking is not Fused, or the embedder was unavailable.
	Calibrated bool
	// Degraded reports that the vector index or the embedder was unavailable, that
	// not all recent units were scored, or that some have no vector yet.
	Degraded bool
}

// Relevant returns the number of results that are relevant; they come first. All are if
// the scores are not calibrated.
func (r Result) Relevant() int {
	i := slices.IndexFunc(r.Found, func(f Found) bool { return r.Calibrated && f.Score < DefaultMinScore })
	if i < 0 {
		return len(r.Found)
	}
	return i
}
