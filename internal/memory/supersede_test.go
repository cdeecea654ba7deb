package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// vectors implements retrieve.Embedder with a vector for every text.
type vectors struct{ *fakes }

func (v vectors) Embed(_ context.Context, texts []string) ([][]float32, error) {
	v.embeddings++
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1}
	}
	return out, nil
}

func embeddingService(f *fakes) *Service {
	s := newService(f)
	s.Embedders = retrieve.Embedders{0: vectors{f}}
	return s
}

func TestCreateLinksUpdates(t *testing.T) {
	t.Parallel()
	similar := func(text string) []retrieve.Similar {
		return []retrieve.Similar{{Owner: "old", Text: text, Similarity: 0.8}}
	}
	long := strings.Repeat("x", maxStatement)
	tests := map[string]struct {
		reason string
		found  []retrieve.Similar
		text   string
		want   Links
	}{
		"Update":     {"the new text gives another value", similar("Lives in Berlin"), "Lives in Munich", Links{Supersedes: []string{"old"}}},
		"Dates":      {"the dates agree with the order of storing", similar("2025-01-01 Lives in Berlin"), "2025-02-01 Lives in Munich", Links{Supersedes: []string{"old"}}},
		"Backdated":  {"the stored text has a later date", similar("2025-02-01 Lives in Berlin"), "2025-01-01 Lives in Munich", Links{SupersededBy: "old"}},
		"Other":      {"it is about something else", similar("Lives in Berlin"), "Likes jazz", Links{}},
		"Dissimilar": {"the vectors differ", []retrieve.Similar{{Owner: "old", Text: "Lives in Berlin", Similarity: 0.1}}, "Lives in Munich", Links{}},
		"Long":       {"a long text holds more than one statement", similar("Lives in Berlin"), "Lives in Munich. " + long, Links{}},
		"LongOld":    {"a long text holds more than one statement", similar("Lives in Berlin. " + long), "Lives in Munich", Links{}},
		"None":       {"there is no other memory", nil, "Lives in Munich", Links{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := filled(0)
			f.memories = stored("old")
			f.similar = tc.found
			if _, err := embeddingService(f).Create(t.Context(), alice, CreateInput{Text: tc.text}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.created.Links); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func stored(ids ...string) []Memory {
	out := make([]Memory, len(ids))
	for i, id := range ids {
		out[i].ID = id
	}
	return out
}

// Statements about different people neither replace each other nor are near-duplicates.
func TestLinksStayWithTheSubject(t *testing.T) {
	t.Parallel()
	ofBob := Attributes{Metadata: []byte(`{"user_id":"bob"}`)}
	found := []retrieve.Similar{{Owner: "nobody's", Text: "Lives in Bonn", Similarity: 0.9}, {Owner: "bob's", Text: "Lives in Berlin", Similarity: 0.8},
		{Owner: "ann's", Text: "Lives in Munich", Similarity: 1}, {Owner: "deleted", Text: "Lives in Berlin", Similarity: 0.8}}
	setup := func() *fakes {
		f := filled(0)
		f.memories = stored("nobody's", "bob's", "ann's", "m")
		f.memories[1].Attributes, f.memories[3].Attributes = ofBob, ofBob
		f.memories[2].Metadata = []byte(`{"user_id":"ann","k":1}`)
		f.similar = slices.Clone(found)
		return f
	}
	text, want := "Lives in Munich", Links{Supersedes: []string{"bob's"}}
	f := setup()
	created, err := embeddingService(f).Create(t.Context(), alice, CreateInput{Text: text, Attributes: ofBob})
	if err != nil || created.Similar != nil {
		t.Errorf("created %+v, %v, want no near-duplicates", created, err)
	}
	if diff := cmp.Diff(want, f.created.Links); diff != "" {
		t.Errorf("links of a new memory (-want +got):\n%s", diff)
	}
	f = setup()
	if _, err := embeddingService(f).Update(t.Context(), alice, UpdateInput{ID: "m", Text: &text}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.edited.Links); diff != "" {
		t.Errorf("links of a changed memory (-want +got):\n%s", diff)
	}
	f, none := setup(), json.RawMessage(`{}`)
	if _, err := embeddingService(f).Update(t.Context(), alice, UpdateInput{ID: "m", Text: &text, AttributeChanges: AttributeChanges{Metadata: &none}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Links{Supersedes: []string{"nobody's"}}, f.edited.Links); diff != "" {
		t.Errorf("links after a change of the subject (-want +got):\n%s", diff)
	}
}

// A memory is stored even if similar ones cannot be searched.
func TestCreateWithoutSimilar(t *testing.T) {
	t.Parallel()
	f := filled(0)
	f.searchFails = errUnavailable
	if _, err := embeddingService(f).Create(t.Context(), alice, CreateInput{Text: "Lives in Munich"}); err != nil {
		t.Fatal(err)
	}
	if f.created.Text == "" {
		t.Error("nothing was stored")
	}
}

// An edited memory does not supersede itself.
func TestUpdateLinksOthersOnly(t *testing.T) {
	t.Parallel()
	f := filled(0)
	f.memories = stored("m", "old")
	f.similar = []retrieve.Similar{{Owner: "m", Text: "Lives in Berlin", Similarity: 1}, {Owner: "old", Text: "Lives in Bonn", Similarity: 1}}
	text := "Lives in Munich"
	if _, err := embeddingService(f).Update(t.Context(), alice, UpdateInput{ID: "m", Text: &text}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Links{Supersedes: []string{"old"}}, f.edited.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestListRanksNewerFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		newer  map[string]string
		want   []string
	}{
		"None":     {"the ranking stays", nil, []string{"m3", "m2", "m1"}},
		"Below":    {"both change places, and others keep theirs", map[string]string{"m3": "m1"}, []string{"m1", "m2", "m3"}},
		"Above":    {"it is in front already", map[string]string{"m1": "m3"}, []string{"m3", "m2", "m1"}},
		"NotFound": {"the search did not find it", map[string]string{"m2": "m0"}, []string{"m3", "m0", "m2", "m1"}},
		"Chain":    {"the newest is first", map[string]string{"m3": "m2", "m2": "m0"}, []string{"m0", "m2", "m3", "m1"}},
		"Cycle":    {"each is returned once", map[string]string{"m3": "m2", "m2": "m3"}, []string{"m3", "m2", "m1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := filled(4)
			f.ranking.Found = f.ranking.Found[:3]
			for i := range f.ranking.Found {
				f.ranking.Found[i].Score = 0.9 - float64(i)/10
				_, f.ranking.Found[i].Superseded = tc.newer[f.ranking.Found[i].Owner]
			}
			f.newer = tc.newer
			listing, err := newService(f).List(t.Context(), alice, ListInput{Query: "x", Count: 9})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, ids(listing.Memories)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for i := 1; i < len(listing.Memories); i++ {
				if listing.Memories[i].Score > listing.Memories[i-1].Score {
					t.Errorf("the scores are not in descending order: %v", listing.Memories)
				}
			}
		})
	}
}

// Near-duplicates are stored and reported; updates and other similar texts are not.
func TestCreateReportsNearDuplicates(t *testing.T) {
	t.Parallel()
	f := filled(0)
	f.memories = stored("same", "old", "other")
	f.similar = []retrieve.Similar{
		{Owner: "same", Text: "2025-01-01 Lives in Munich", Similarity: 1.01},
		{Owner: "old", Text: "Lives in Berlin", Similarity: 0.9},
		{Owner: "other", Text: "Munich has a river", Similarity: 0.8},
	}
	got, err := embeddingService(f).Create(t.Context(), alice, CreateInput{Text: "2025-02-02 Lives in Munich"})
	if err != nil {
		t.Fatal(err)
	}
	want := []SimilarMemory{{ID: "same", Text: "2025-01-01 Lives in Munich", Score: 1}}
	if diff := cmp.Diff(want, got.Similar); diff != "" {
		t.Errorf("similar memories (-want +got):\n%s", diff)
	}
	if f.created.Text == "" {
		t.Error("nothing was stored")
	}
}
