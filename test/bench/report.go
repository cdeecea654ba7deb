package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// ratio compares two medians of one run.
type ratio struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	AtMost float64 `json:"atMost"`
}

// report is the result of a run.
type report struct {
	Machine machine
	Rows    []*series
	Ratios  []ratio
	// Memory is the resident memory of processes in bytes, by description.
	Memory []footprint
	// Facts are results that are no durations, such as stale reads.
	Facts []string
}

type footprint struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// row returns the series of an operation.
func (r *report) row(operation, subject string, size int) *series {
	for _, s := range r.Rows {
		if s.Operation == operation && s.Subject == subject && s.Size == size {
			return s
		}
	}
	s := &series{Operation: operation, Subject: subject, Size: size}
	r.Rows = append(r.Rows, s)
	return s
}

// compare adds the ratio of the median of one subject to the sum of the medians of others, unless one was not measured.
func (r *report) compare(name string, atMost float64, of *series, to ...*series) {
	var sum time.Duration
	for _, s := range to {
		if len(s.took) == 0 {
			return
		}
		sum += s.quantile(0.5)
	}
	if len(of.took) > 0 && sum > 0 {
		r.Ratios = append(r.Ratios, ratio{name, float64(of.quantile(0.5)) / float64(sum), atMost})
	}
}

// String returns the report as tables.
func (r *report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", r.Machine)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\tmemories\tsubject\tn\tp50 ms\tp95 ms\tp99 ms\t1/s\tCPU ms\tKiB\tallocations\t")
	for _, s := range r.Rows {
		if len(s.took) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%.0f\t%s\t\n", s.Operation, s.Size, s.Subject, len(s.took),
			ms(s.quantile(0.5)), ms(s.quantile(0.95)), ms(s.quantile(0.99)), s.perSecond(), s.cost.per(len(s.took)))
	}
	_ = w.Flush()
	out.WriteString("\n")
	fmt.Fprintln(w, "ratio of medians\tvalue\tat most\t\t")
	for _, x := range r.Ratios {
		verdict := "met"
		if x.Value > x.AtMost {
			verdict = "missed"
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t\n", x.Name, x.Value, x.AtMost, verdict)
	}
	_ = w.Flush()
	out.WriteString("\n")
	for _, m := range r.Memory {
		fmt.Fprintf(&out, "resident memory, %s: %d MiB\n", m.Name, m.Bytes>>20)
	}
	for _, f := range r.Facts {
		fmt.Fprintln(&out, f)
	}
	return out.String()
}

// MarshalJSON returns the report with times in milliseconds.
func (r *report) MarshalJSON() ([]byte, error) {
	type row struct {
		Operation   string  `json:"operation"`
		Subject     string  `json:"subject"`
		Size        int     `json:"memories"`
		N           int     `json:"n"`
		P50         float64 `json:"p50Milliseconds"`
		P95         float64 `json:"p95Milliseconds"`
		P99         float64 `json:"p99Milliseconds"`
		PerSecond   float64 `json:"perSecond"`
		CPU         float64 `json:"cpuMilliseconds,omitempty"`
		Bytes       float64 `json:"allocatedBytes,omitempty"`
		Allocations float64 `json:"allocations,omitempty"`
	}
	out := struct {
		Machine machine     `json:"machine"`
		Rows    []row       `json:"rows"`
		Ratios  []ratio     `json:"ratios"`
		Memory  []footprint `json:"memory"`
		Facts   []string    `json:"facts"`
	}{Machine: r.Machine, Ratios: r.Ratios, Memory: r.Memory, Facts: r.Facts}
	for _, s := range r.Rows {
		if n := float64(len(s.took)); n > 0 {
			out.Rows = append(out.Rows, row{s.Operation, s.Subject, s.Size, len(s.took), toMS(s.quantile(0.5)), toMS(s.quantile(0.95)),
				toMS(s.quantile(0.99)), s.perSecond(), toMS(s.cost.cpu) / n, s.cost.bytes / n, s.cost.allocations / n})
		}
	}
	return json.Marshal(out)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", toMS(d)) }

func toMS(d time.Duration) float64 { return float64(d) / 1e6 }
