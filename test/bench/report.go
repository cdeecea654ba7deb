package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ratio compares two results of one run.
type ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Least and Most are those of the rounds of which Value is the median; 0 if there was one.
	Least float64 `json:"least,omitempty"`
	Most  float64 `json:"most,omitempty"`
	// AtMost and AtLeast are the target; 0 if there is none.
	AtMost  float64 `json:"atMost,omitempty"`
	AtLeast float64 `json:"atLeast,omitempty"`
}

// cells are the range of the rounds, the target and whether it was met.
func (r ratio) cells() string {
	rounds, target, verdict := "", "", ""
	if r.Most > 0 {
		rounds = fmt.Sprintf("%.2f–%.2f", r.Least, r.Most)
	}
	switch {
	case r.AtMost > 0:
		target = fmt.Sprintf("≤ %.2f", r.AtMost)
	case r.AtLeast > 0:
		target = fmt.Sprintf("≥ %.2f", r.AtLeast)
	}
	if target != "" {
		verdict = "met"
		if r.AtMost > 0 && r.Value > r.AtMost || r.Value < r.AtLeast {
			verdict = "missed"
		}
	}
	return rounds + "\t" + target + "\t" + verdict
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
	// AtMost is the target in MiB; 0 if there is none.
	AtMost int64 `json:"atMostMiB,omitempty"`
}

func (f footprint) String() string {
	text := fmt.Sprintf("resident memory, %s: %d MiB", f.Name, f.Bytes>>20)
	if f.AtMost > 0 {
		text += fmt.Sprintf(" (at most %d)", f.AtMost)
	}
	return text
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

// compare adds the ratio of the median of one subject to the sum of the medians of others.
func (r *report) compare(name string, atMost float64, of *series, to ...*series) {
	r.compareAt(0.5, ratio{Name: name, AtMost: atMost}, of, to...)
}

// compareAt adds the median of the ratios in each round: of a quantile of one subject to the sum of those of others. It
// does nothing if one of them was not measured. All series have the same number of operations.
func (r *report) compareAt(q float64, target ratio, of *series, to ...*series) {
	if slices.ContainsFunc(slices.Concat(to, []*series{of}), func(s *series) bool { return len(s.took) == 0 }) {
		return
	}
	n := rounds(len(of.took))
	sums := make([]time.Duration, n)
	for _, s := range to {
		for i, part := range s.parts(n) {
			sums[i] += part.quantile(q)
		}
	}
	var values []float64
	for i, part := range of.parts(n) {
		values = append(values, float64(part.quantile(q))/float64(sums[i]))
	}
	r.addRatio(target, values)
}

// compareRates adds the median of the ratios of the operations per second in each round.
func (r *report) compareRates(target ratio, of, to *series) {
	var values []float64
	for i, rate := range of.rates {
		values = append(values, rate/to.rates[i])
	}
	r.addRatio(target, values)
}

func (r *report) addRatio(target ratio, values []float64) {
	slices.Sort(values)
	target.Value = values[len(values)/2]
	if len(values) > 1 {
		target.Least, target.Most = values[0], values[len(values)-1]
	}
	r.Ratios = append(r.Ratios, target)
}

// allRounds is the number of rounds of which the ratio of durations is the median.
const allRounds = 5

// rounds returns the number of rounds into which n operations are divided: a quantile needs some operations.
func rounds(n int) int {
	if n < 20*allRounds {
		return 1
	}
	return allRounds
}

// String returns the report as tables.
func (r *report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", r.Machine)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\tsize\tsubject\tn\tp50 ms\tp95 ms\tp99 ms\t1/s\tCPU ms\tKiB\tallocations\t")
	for _, s := range r.Rows {
		if len(s.took) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%.0f\t%s\t\n", s.Operation, s.Size, s.Subject, len(s.took), s.latency(), s.perSecond(),
			s.cost.per(len(s.took)))
	}
	_ = w.Flush()
	out.WriteString("\n")
	fmt.Fprintln(w, "ratio\tvalue\trounds\ttarget\t\t")
	for _, x := range r.Ratios {
		fmt.Fprintf(w, "%s\t%.2f\t%s\t\n", x.Name, x.Value, x.cells())
	}
	_ = w.Flush()
	out.WriteString("\n")
	for _, m := range r.Memory {
		fmt.Fprintln(&out, m)
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
		Size        int     `json:"size"`
		N           int     `json:"n"`
		P50         float64 `json:"p50Milliseconds,omitempty"`
		P95         float64 `json:"p95Milliseconds,omitempty"`
		P99         float64 `json:"p99Milliseconds,omitempty"`
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
			x := row{Operation: s.Operation, Subject: s.Subject, Size: s.Size, N: len(s.took), PerSecond: s.perSecond(),
				CPU: toMS(s.cost.cpu) / n, Bytes: s.cost.bytes / n, Allocations: s.cost.allocations / n}
			if !s.throughput {
				x.P50, x.P95, x.P99 = toMS(s.quantile(0.5)), toMS(s.quantile(0.95)), toMS(s.quantile(0.99))
			}
			out.Rows = append(out.Rows, x)
		}
	}
	return json.Marshal(out)
}

// latency returns the cells of the quantiles.
func (s *series) latency() string {
	if s.throughput {
		return "\t\t"
	}
	return ms(s.quantile(0.5)) + "\t" + ms(s.quantile(0.95)) + "\t" + ms(s.quantile(0.99))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", toMS(d)) }

func toMS(d time.Duration) float64 { return float64(d) / 1e6 }
