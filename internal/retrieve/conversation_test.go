package retrieve

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// in returns a ranking of messages with these logits, each in the conversation named by a letter.
func in(conversations string, logits ...float64) (*comparison, []Hit) {
	c := &comparison{query: Query{Kind: Chat, Text: "?"}}
	var ranking []Hit
	for i, owner := range strings.Split(conversations, "") {
		c.all = append(c.all, Described{ID: UnitID(i), Owner: owner, Seq: i, Text: "a"})
		ranking = append(ranking, Hit{ID: UnitID(i), Score: logistic(logits[i])})
	}
	return c, ranking
}

func TestBestConversationFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, conversations string
		logits                []float64
		want                  []UnitID
	}{
		"Several":  {"two good messages are more likely to contain the answer than a slightly better one", "abb", []float64{3, 2.9, 2.8}, []UnitID{1, 0, 2}},
		"Third":    {"also from the third place", "abcc", []float64{3, 2.9, 2.8, 2.7}, []UnitID{2, 0, 1, 3}},
		"Better":   {"a much better message stays first", "abb", []float64{3, 1, 1}, []UnitID{0, 1, 2}},
		"Same":     {"its conversation is the best one", "aba", []float64{3, 2.9, 2.8}, []UnitID{0, 1, 2}},
		"Fourth":   {"a message below the best three stays there", "abcdd", []float64{3, 3, 3, 3, 3}, []UnitID{0, 1, 2, 3, 4}},
		"Equal":    {"the better message of equal conversations stays first", "ab", []float64{3, 3}, []UnitID{0, 1}},
		"Certain":  {"a score of 1 is finite", "ab", []float64{90, 90}, []UnitID{0, 1}},
		"One":      {"there is no other", "a", []float64{3}, []UnitID{0}},
		"Nowhere":  {"nothing is found", "", nil, nil},
		"Hopeless": {"many bad messages do not outweigh a good one", "abbbbbbb", []float64{3, 0, -1, -1, -1, -1, -1, -1}, []UnitID{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ranking := in(tc.conversations, tc.logits...)
			if d := cmp.Diff(tc.want, unitIDs(c.bestConversationFirst(ranking))); d != "" && len(tc.want) > 0 {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// A message counts once, however many pieces it has.
func TestBestConversationCountsMessagesOnce(t *testing.T) {
	t.Parallel()
	c, ranking := in("abb", 3, 2.9, 2.8)
	c.all[2].Seq = c.all[1].Seq
	if got := c.bestConversationFirst(ranking); got[0].ID != 0 {
		t.Errorf("message %d is first, want the best one", got[0].ID)
	}
}

// For any scores, at most one of the best messages moves, and only to the first place.
func TestBestConversationFirstProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float64Range(-50, 50), 1, 20).Draw(t, "logits")
		slices.SortFunc(logits, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
		owners := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), len(logits), len(logits)).Draw(t, "owners")
		c, ranking := in(strings.Join(owners, ""), logits...)
		got := c.bestConversationFirst(ranking)
		checkOneMove(t, ranking, got, 0)
		if at := slices.Index(unitIDs(ranking), got[0].ID); at >= leadDepth {
			t.Fatalf("the message with index %d moved", at)
		}
	})
}
