package e2e_test

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

//go:embed testdata/paraphrases.tsv
var paraphrases string

// missedParaphrases is how many of a hundred paraphrases may miss their memory. The default
// model misses one.
const missedParaphrases = 2

// TestParaphraseFindsNewMemory stores a hundred memories among thousands and
// searches for each by a paraphrase in the next request. On a busy machine a
// response may be degraded; such a search is repeated.
func TestParaphraseFindsNewMemory(t *testing.T) {
	alice := filled(t)
	missed, repeated := 0, 0
	for line := range strings.Lines(paraphrases) {
		text, question, _ := strings.Cut(strings.TrimSpace(line), "\t")
		id := alice.remember(t, text)
		var found []string
		eventually(t, time.Minute, func() string {
			var degraded bool
			if found, degraded = alice.recall(t, question); degraded {
				repeated++
				return fmt.Sprintf("%q: the response is degraded", question)
			}
			return ""
		})
		if !slices.Contains(found, id) {
			missed++
			t.Logf("the search %q did not find %q", question, text)
		}
	}
	if missed > missedParaphrases {
		t.Errorf("missed %d of 100, want at most %d; %d searches repeated after a degraded response", missed, missedParaphrases, repeated)
	}
}

// TestDeleteRemovesMemoryFromBothStores queries PostgreSQL and Milvus directly.
func TestDeleteRemovesMemoryFromBothStores(t *testing.T) {
	alice := filled(t)
	const text = "2026-05-05 The zeppelin museum closes at noon."
	id := alice.remember(t, text)
	eventually(t, time.Minute, func() string { return unindexed(t, "filled") })
	units := unitsOf(t, id)
	if len(units) == 0 || len(indexed(t, "filled", units)) != len(units) {
		t.Fatalf("units %v: Milvus contains %v before the delete", units, indexed(t, "filled", units))
	}
	alice.forget(t, id)
	if rows := rowsWith(t, text); rows != 0 {
		t.Errorf("PostgreSQL contains the text in %d rows after the delete", rows)
	}
	if remaining := unitsOf(t, id); len(remaining) != 0 {
		t.Errorf("PostgreSQL contains units %v after the delete", remaining)
	}
	eventually(t, 10*time.Second, func() string {
		if remaining := indexed(t, "filled", units); len(remaining) != 0 {
			return fmt.Sprintf("Milvus contains units %v after the delete", remaining)
		}
		return ""
	})
}

// TestMilvusUnavailable suspends Milvus, like a machine that hangs, and resumes it.
// It does not run in parallel with other tests, which need Milvus.
func TestMilvusUnavailable(t *testing.T) {
	alice := filled(t)
	before := alice.remember(t, "2026-05-03 The beehives stand behind the barn.")
	eventually(t, time.Minute, func() string { return unindexed(t, "filled") })

	resume := suspendMilvus(t)
	during := alice.remember(t, "2026-05-04 The canoe is stored under the bridge.")
	for query, id := range map[string]string{"beehives barn": before, "canoe bridge": during} {
		found, degraded := alice.recall(t, query)
		if !slices.Contains(found, id) {
			t.Errorf("%q with Milvus unavailable: memory not found", query)
		}
		if !degraded {
			t.Errorf("%q with Milvus unavailable: response is not degraded", query)
		}
	}
	resume()
	eventually(t, 2*time.Minute, func() string { return unindexed(t, "filled") })
	eventually(t, time.Minute, func() string {
		found, degraded := alice.recall(t, "where did I put my boat")
		if degraded || !slices.Contains(found, during) {
			return "semantic search does not find the memory stored during the outage, or the response is still degraded"
		}
		return ""
	})
}

// filled returns the user of a tenant with more memories than search scores without
// the index. The tenant is filled once.
func filled(t *testing.T) user {
	t.Helper()
	applyTenant(t, "filled", "  quota: {memories: 20000, requestsPerMinute: 1000000}\n")
	alice := connect(t, secret(t, "filled", "alice", "token"))
	fillOnce.Do(func() {
		fill(t, alice, placement.ExactUnits+100)
		waitIndexed(t, "filled")
	})
	return alice
}

var fillOnce sync.Once

// fill stores n different memories that no test searches for.
func fill(t *testing.T, u user, n int) {
	t.Helper()
	subjects := []string{"invoice", "shipment", "ticket", "parcel", "contract", "sensor", "warehouse", "pallet"}
	verbs := []string{"was archived", "was delayed", "passed inspection", "was relabeled", "was rerouted"}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < n; i += 4 {
				u.remember(t, fmt.Sprintf("2026-01-%02d The %s number %d %s at depot %d.", i%28+1, subjects[i%len(subjects)], i, verbs[i%len(verbs)], i%97))
			}
		})
	}
	wg.Wait()
}
