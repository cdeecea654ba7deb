package memory

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxStatement is the maximum length in bytes of a text that can supersede another
	// one, or be superseded. Longer texts contain more than one statement.
	maxStatement = 300
	// similarLimit is the number of similar memories that a new one is compared with.
	similarLimit = 10
)

// similar embeds the units of a text. It returns the memories about the same subject, among those most similar to a text, that replace it, are replaced by it
// or say nearly the same, except for id, its own memory, or "" for a new one. There are none if the text is too long to be one
// statement, or if the embedder or the database fails: a memory is stored in any case.
func (s *Service) similar(ctx context.Context, who tenant.Identity, text, id, subject string, units []retrieve.Unit) []retrieve.Similar {
	if len(text) > maxStatement || len(units) != 1 {
		s.embed(ctx, who.Generation, units)
		return nil
	}
	embed := sync.OnceValue(func() []float32 {
		s.embed(ctx, who.Generation, units)
		return units[0].Vector
	})
	var statement retrieve.Statement
	var parsed sync.WaitGroup
	parsed.Go(func() { statement = retrieve.ParseStatement(text) }) // while the text is embedded
	q := retrieve.Query{Kind: retrieve.Memory, Generation: who.Generation, Limit: similarLimit}
	list, err := s.Searcher.Similar(ctx, who.Scope, who.Placement, q, embed)
	parsed.Wait()
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(m retrieve.Similar) bool { return m.Owner == id || len(m.Text) > maxStatement })
	return s.aboutSubject(ctx, who, subject, relatedTo(statement, list))
}

// relatedTo keeps the memories that a statement replaces, or that replace it or say nearly the same. It parses them in parallel.
func relatedTo(statement retrieve.Statement, list []retrieve.Similar) (out []retrieve.Similar) {
	keep := make([]bool, len(list))
	var wait sync.WaitGroup
	for i, m := range list {
		wait.Go(func() { keep[i] = related(statement, retrieve.ParseStatement(m.Text), m.Similarity) })
	}
	wait.Wait()
	for i, m := range list {
		if keep[i] {
			out = append(out, m)
		}
	}
	return out
}

func related(a, b retrieve.Statement, similarity float64) bool {
	return a.Supersedes(b, similarity) || b.Supersedes(a, similarity) || a.NearDuplicate(b)
}

// aboutSubject keeps the memories about a subject. Statements about different people do
// not replace each other.
func (s *Service) aboutSubject(ctx context.Context, who tenant.Identity, subject string, list []retrieve.Similar) []retrieve.Similar {
	if len(list) == 0 {
		return nil
	}
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.Owner
	}
	found, err := s.byID(ctx, who, ids, time.Time{})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(m retrieve.Similar) bool {
		other, ok := found[m.Owner]
		return !ok || other.Subject() != subject
	})
}

// compare returns the links between a text and similar memories, and those that say nearly the same.
func compare(text string, found []retrieve.Similar) (out Links, duplicates []SimilarMemory) {
	if len(found) == 0 {
		return out, nil
	}
	statement := retrieve.ParseStatement(text)
	for _, m := range found {
		other := retrieve.ParseStatement(m.Text)
		switch {
		case statedEarlier(text, m.Text):
			if out.SupersededBy == "" && other.Supersedes(statement, m.Similarity) {
				out.SupersededBy = m.Owner
			}
		case statement.Supersedes(other, m.Similarity):
			out.Supersedes = append(out.Supersedes, m.Owner)
		}
		if statement.NearDuplicate(other) {
			duplicates = append(duplicates, SimilarMemory{ID: m.Owner, Text: m.Text, Score: min(max(m.Similarity, 0), 1)})
		}
	}
	return out, duplicates
}

var leadingDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

// statedEarlier reports whether both texts start with a date and that of the first is
// earlier. Otherwise the order of storing counts.
func statedEarlier(text, than string) bool {
	a, b := leadingDate.FindString(text), leadingDate.FindString(than)
	return a != "" && b != "" && a < b
}

// newerFirst ranks each memory that supersedes another one before it, also if the
// search did not find it.
func (s *Service) newerFirst(ctx context.Context, who tenant.Identity, in ListInput, res *retrieve.Result) error {
	superseded := slices.DeleteFunc(slices.Clone(res.Found), func(f retrieve.Found) bool { return !f.Superseded })
	if len(superseded) == 0 {
		return nil
	}
	newer, err := s.Store.Newer(ctx, who.Scope, owners(superseded), Filter{Bucket: in.Bucket, Where: in.Where, AsOf: in.AsOf})
	if err != nil {
		return fmt.Errorf("read superseding memories: %w", err)
	}
	res.Found = withNewer(res.Found, newer)
	return nil
}

// withNewer sorts the memories of each chain of updates newest first, on the positions that
// they have together, so that other memories keep theirs. The newest one is inserted if the
// search did not find it. Scores stay with the positions.
func withNewer(found []retrieve.Found, newer map[string]string) []retrieve.Found {
	if len(newer) == 0 {
		return found
	}
	chains, steps, owned := map[string][]retrieve.Found{}, map[string]int{}, map[string]bool{}
	newest := make([]string, len(found))
	for i, f := range found {
		newest[i], steps[f.Owner] = endOf(f.Owner, newer)
		chains[newest[i]] = append(chains[newest[i]], f)
		owned[f.Owner] = true
	}
	for _, chain := range chains {
		slices.SortStableFunc(chain, func(a, b retrieve.Found) int { return cmp.Compare(steps[a.Owner], steps[b.Owner]) })
	}
	out := make([]retrieve.Found, 0, len(found)+len(newer))
	for i, f := range found {
		id := newest[i]
		if !owned[id] {
			owned[id] = true
			out = append(out, retrieve.Found{Owner: id, Score: f.Score})
		}
		next := chains[id][0]
		next.Score = f.Score
		out = append(out, next)
		chains[id] = chains[id][1:]
	}
	return out
}

// endOf follows a chain of updates and returns its newest memory and the number of steps.
func endOf(start string, newer map[string]string) (end string, steps int) {
	end = start
	for next, ok := newer[end]; ok && next != start && steps <= len(newer); next, ok = newer[end] {
		end = next
		steps++
	}
	return end, steps
}
