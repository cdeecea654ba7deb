package prometheustest

import (
	"fmt"
	"strings"
	"testing"
)

// Fired tells how an alert was made to fire.
type Fired struct {
	Alert, How string
	// Query is the alert's expression as it was asked, Sample what it gave; the
	// zero one when another test asked.
	Query string
	Sample
}

// Ask asks an alert's expression, in which the replacements, pairs of old and
// new, are made; it fails the test when there is nothing to replace.
func (s *Server) Ask(tb testing.TB, alert string, replace ...string) (Fired, bool) {
	tb.Helper()
	for _, a := range s.Alerts(tb) {
		if a.Name != alert {
			continue
		}
		f := Fired{Alert: alert, Query: a.Query}
		for i := 0; i < len(replace); i += 2 {
			if !strings.Contains(f.Query, replace[i]) {
				tb.Fatalf("%s does not ask for %q any more: %s", alert, replace[i], a.Query)
			}
			f.Query = strings.ReplaceAll(f.Query, replace[i], replace[i+1])
		}
		found := s.Query(tb, f.Query)
		if len(found) > 0 {
			f.Sample = found[0]
		}
		return f, len(found) > 0
	}
	tb.Fatalf("there is no alert %s", alert)
	return Fired{}, false
}

// AlertTable is how alerts were made to fire, in Markdown.
func AlertTable(all []Fired) string {
	var b strings.Builder
	b.WriteString("| alert | how it was made to fire | value seen | asked |\n|---|---|---|---|\n")
	for _, f := range all {
		value := "see there"
		if f.Sample.Labels != nil {
			value = f.Sample.String()
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", f.Alert, f.How, value, cell(f.Query))
	}
	return b.String()
}
