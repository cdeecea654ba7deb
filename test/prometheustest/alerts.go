package prometheustest

import (
	"fmt"
	"strings"
	"testing"
)

// Fired describes how a test triggered an alert.
type Fired struct {
	Alert, How string
	// Query is the evaluated expression and Sample its result. Sample is zero if
	// another test triggers the alert.
	Query string
	Sample
}

// Evaluate evaluates an alert's expression after replacing pairs of old and new strings.
// It fails the test if an old string does not occur.
func (s *Server) Evaluate(tb testing.TB, alert string, replace ...string) (Fired, bool) {
	tb.Helper()
	for _, a := range s.Alerts(tb) {
		if a.Name != alert {
			continue
		}
		f := Fired{Alert: alert, Query: a.Query}
		for i := 0; i < len(replace); i += 2 {
			if !strings.Contains(f.Query, replace[i]) {
				tb.Fatalf("the expression of %s does not contain %q: %s", alert, replace[i], a.Query)
			}
			f.Query = strings.ReplaceAll(f.Query, replace[i], replace[i+1])
		}
		found := s.Query(tb, f.Query)
		if len(found) > 0 {
			f.Sample = found[0]
		}
		return f, len(found) > 0
	}
	tb.Fatalf("no alert %s", alert)
	return Fired{}, false
}

// AlertTable returns a Markdown table of how the tests triggered the alerts.
func AlertTable(all []Fired) string {
	var b strings.Builder
	b.WriteString("| alert | trigger | value | expression |\n|---|---|---|---|\n")
	for _, f := range all {
		value := "see the test"
		if f.Sample.Labels != nil {
			value = f.Sample.String()
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", f.Alert, f.How, value, cell(f.Query))
	}
	return b.String()
}
