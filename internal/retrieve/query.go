package retrieve

import (
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// Query is what a caller of the Engine searches for.
type Query struct {
	Kind       Kind
	Text       string
	Group      int64                  // 0 for all
	From, To   time.Time              // owner created at or after From and before To; zero for unbounded
	Where      filter.Filter          // selects memories
	Generation placement.GenerationID // of the vectors and of the model that embeds Text
	// After and Before restrict chats to messages written at or after the first and
	// before the second; zero for unbounded. Memories ignore them.
	After, Before time.Time
	// Window is the time the query is about. Messages inside are preferred, not
	// required. Zero for none.
	Window     Window
	Zone       *time.Location // time zone of dates in Text; nil for UTC
	Ranking    Ranking        // searches to run; "" for Fused
	SkipRerank bool           // keep the order of the reranker's input
	// MinScore is the score below which results are omitted; nil for DefaultMinScore. It only
	// applies to calibrated scores.
	MinScore *float64
	Limit    int // number of results, at least 1
}

// Ranking is a way to rank units. The parts of the fused ranking exist to measure it.
type Ranking string

// The rankings.
const (
	Fused   Ranking = "fused"
	Lexical Ranking = "lexical"
	Dense   Ranking = "dense"
)

// Result is a ranking, best first.
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

// Found is a unit in a ranking.
type Found struct {
	ID         UnitID
	Owner      string
	Seq        int
	Start, End int
	At         time.Time // time of the message; zero for a memory
	// Superseded reports that the memory is linked to a newer one. The link may be newer
	// than Query.To, and the newer memory may be deleted.
	Superseded bool
	Score      float64 // 0 to 1; see Result.Calibrated
}

// Similar is a unit that is similar to a text.
type Similar struct {
	Owner      string
	Text       string
	Similarity float64 // 0 for unrelated and 1 for equal texts, with any model
}
