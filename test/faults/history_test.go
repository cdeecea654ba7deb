package faults_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// outcome is what a client knows about an operation.
type outcome string

const (
	acknowledged outcome = "acknowledged"
	refused      outcome = "refused" // nothing was changed
	unknown      outcome = "unknown" // it happened completely, later, or not at all
)

// op is an operation of a user.
type op struct {
	Begun, Ended time.Duration // since the start
	User, Kind   string
	Keys         []string // of the objects
	Outcome      outcome
	Detail       string
}

// String returns the operation as a line of a report.
func (o op) String() string {
	return fmt.Sprintf("%9.3f–%.3f s  %s  %s %s: %s %s", o.Begun.Seconds(), o.Ended.Seconds(), o.User, o.Kind,
		strings.Join(o.Keys, ","), o.Outcome, o.Detail)
}

// The kinds of violations.
const (
	lost       = "lost"       // acknowledged, but missing or different
	reappeared = "reappeared" // deleted, but found
	partial    = "partial"    // of an operation that must happen as a whole
	foreign    = "foreign"    // shown to another user
	orphaned   = "orphaned"   // in the vector store, but not in the database
	unindexed  = "unindexed"  // in the database, but not in the vector store
	counter    = "counter"    // differs from the rows
	overQuota  = "over quota"
	stuck      = "stuck"      // a job or an import that does not end
	ledger     = "ledger"     // of an import, does not add up
	unaudited  = "unaudited"  // a change without exactly one audit record
	unexpected = "unexpected" // a response that no fault explains
)

// violation is a broken promise.
type violation struct{ Kind, User, Key, Text string }

// check is a read after a write.
type check string

const (
	readYourWrite    check = "read-your-write"
	deleteVisibility check = "delete visibility"
	revocation       check = "revocation"
)

// history records the operations, checks and violations of a run. It is safe for
// concurrent use.
type history struct {
	begun time.Time

	mu         sync.Mutex
	ops        []op
	checks     map[check]int
	violations []violation
	faults     map[string]int
	seen       map[violation]bool
}

func newHistory() *history {
	return &history{begun: time.Now(), checks: map[check]int{}, faults: map[string]int{}, seen: map[violation]bool{}}
}

func (h *history) now() time.Duration { return time.Since(h.begun) }

func (h *history) add(o op) {
	o.Ended = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

func (h *history) checked(c check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[c]++
}

func (h *history) injected(fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[fault]++
}

// violate records a violation, once.
func (h *history) violate(kind, user, key, format string, args ...any) {
	v := violation{kind, user, key, fmt.Sprintf(format, args...)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.seen[v] {
		h.seen[v] = true
		h.violations = append(h.violations, v)
	}
}

// count returns the number of violations of a kind.
func (h *history) count(kind string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.violations {
		if v.Kind == kind {
			n++
		}
	}
	return n
}

// acknowledged returns the number of acknowledged operations.
func (h *history) acknowledged() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		if o.Outcome == acknowledged {
			n++
		}
	}
	return n
}

// totals returns the totals as a line.
func (h *history) totals() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	total, faults := map[outcome]int{}, 0
	for _, o := range h.ops {
		total[o.Outcome]++
	}
	for _, n := range h.faults {
		faults += n
	}
	return fmt.Sprintf("%v, %d faults, %v", total, faults, h.checks)
}

// mostReported limits the violations that are printed.
const mostReported = 20

// report describes the violations, each with the operations on its object.
func (h *history) report() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, v := range h.violations[:min(len(h.violations), mostReported)] {
		fmt.Fprintf(&b, "%s: user %s, object %s: %s\n", strings.ToUpper(v.Kind), v.User, v.Key, v.Text)
		for _, o := range h.ops {
			if o.User == v.User && (slices.Contains(o.Keys, v.Key) || len(o.Keys) == 0) && o.Outcome != refused {
				fmt.Fprintf(&b, "    %s\n", o)
			}
		}
	}
	if n := len(h.violations) - mostReported; n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	return b.String()
}

// table summarizes the run: operations by kind and outcome, faults, checks and violations.
func (h *history) table() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]map[outcome]int{}
	total := map[outcome]int{}
	for _, o := range h.ops {
		if count[o.Kind] == nil {
			count[o.Kind] = map[outcome]int{}
		}
		count[o.Kind][o.Outcome]++
		total[o.Outcome]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %12s %8s %8s\n", "operation", acknowledged, refused, unknown)
	count["total"] = total
	for _, kind := range append(slices.DeleteFunc(slices.Sorted(maps.Keys(count)), func(k string) bool { return k == "total" }), "total") {
		fmt.Fprintf(&b, "%-28s %12d %8d %8d\n", kind, count[kind][acknowledged], count[kind][refused], count[kind][unknown])
	}
	for _, fault := range slices.Sorted(maps.Keys(h.faults)) {
		fmt.Fprintf(&b, "fault %-40s %6d\n", fault, h.faults[fault])
	}
	fmt.Fprintf(&b, "checks: %v\n", h.checks)
	violations := map[string]int{}
	for _, v := range h.violations {
		violations[v.Kind]++
	}
	for _, kind := range []string{lost, reappeared, partial, foreign, orphaned, unindexed, counter, overQuota, stuck, ledger, unaudited, unexpected} {
		fmt.Fprintf(&b, "%s %d  ", kind, violations[kind])
	}
	return b.String() + "\n"
}
