package prometheustest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Panel is a query of a dashboard panel.
type Panel struct{ Board, Title, Query string }

// Panels returns the queries of Grafana dashboards with the variables of a release
// called mnemo replaced. A panel without a query is an error.
func Panels(tb testing.TB, namespace, tenant string, boards ...string) []Panel {
	tb.Helper()
	fill := strings.NewReplacer("$__rate_interval", "30s", "$namespace", namespace, "$release", "mnemo", "$tenant", tenant)
	var all []Panel
	for _, raw := range boards {
		var board struct {
			Title  string
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal([]byte(raw), &board); err != nil {
			tb.Fatalf("read dashboard: %v", err)
		}
		for _, p := range board.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				tb.Errorf("%s: panel %q has no query", board.Title, p.Title)
			}
			for _, target := range p.Targets {
				all = append(all, Panel{board.Title, p.Title, fill.Replace(target.Expr)})
			}
		}
	}
	return all
}

// Seen holds the largest value of each panel.
type Seen map[Panel]Sample

// Record evaluates all panels and returns a message with those that have had no data
// so far.
func (s Seen) Record(tb testing.TB, server *Server, panels []Panel) string {
	tb.Helper()
	var empty []string
	for _, p := range panels {
		for _, sample := range server.Query(tb, p.Query) {
			if largest, ok := s[p]; !ok || sample.Value > largest.Value {
				s[p] = sample
			}
		}
		if _, ok := s[p]; !ok {
			empty = append(empty, p.Board+" / "+p.Title+": "+p.Query)
		}
	}
	if len(empty) == 0 {
		return ""
	}
	return "panels without data:\n" + strings.Join(empty, "\n")
}

// Table returns a Markdown table of the panels with their largest values.
func (s Seen) Table(panels []Panel) string {
	var b strings.Builder
	b.WriteString("| dashboard | panel | query | largest value |\n|---|---|---|---|\n")
	for _, p := range panels {
		_, _ = fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", p.Board, p.Title, cell(p.Query), s[p])
	}
	return b.String()
}

// String returns the value with its labels.
func (s Sample) String() string {
	var labels []string
	for name, value := range s.Labels {
		labels = append(labels, name+"="+value)
	}
	text := fmt.Sprintf("%.4g", s.Value)
	if len(labels) > 0 {
		slices.Sort(labels)
		text += " (" + strings.Join(labels, ", ") + ")"
	}
	return text
}

// cell escapes a text for a table cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
