package bench

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// usage is what a process has used.
type usage struct {
	cpu                time.Duration
	bytes, allocations float64 // allocated since its start
	resident           int64   // bytes, now
}

// since returns the usage between two measurements, with the resident memory of the later.
func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.bytes - before.bytes, u.allocations - before.allocations, u.resident}
}

func (u usage) plus(v usage) usage {
	return usage{u.cpu + v.cpu, u.bytes + v.bytes, u.allocations + v.allocations, v.resident}
}

// per returns the cells for the usage of one of n operations.
func (u usage) per(n int) string {
	if u.cpu == 0 {
		return "\t\t"
	}
	return fmt.Sprintf("%.2f\t%.0f\t%.0f", toMS(u.cpu)/float64(n), u.bytes/float64(n)/1024, u.allocations/float64(n))
}

// measure reads the usage of a process of Mnemo from its metrics.
func measure(metrics string) (usage, error) {
	response, err := http.Get(metrics) //nolint:noctx // loopback
	if err != nil {
		return usage{}, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	if err := lines.Err(); err != nil {
		return usage{}, fmt.Errorf("read metrics: %w", err)
	}
	return usage{
		cpu:         time.Duration(values["process_cpu_seconds_total"] * 1e9),
		bytes:       values["go_memstats_alloc_bytes_total"],
		allocations: values["go_memstats_mallocs_total"],
		resident:    int64(values["process_resident_memory_bytes"]),
	}, nil
}

// processorTimes returns the processor time of all processes with the names, with that of their ended children.
func processorTimes(names ...string) (map[string]time.Duration, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	out := map[string]time.Duration{}
	for _, p := range all {
		stat, err := p.Stat() // of a process that has ended there is none
		if err != nil || !slices.Contains(names, stat.Comm) {
			continue
		}
		ticks := int(stat.UTime+stat.STime) + stat.CUTime + stat.CSTime
		out[stat.Comm] += time.Duration(ticks) * 10 * time.Millisecond
	}
	return out, nil
}

// machine describes where a run took place.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Go     string `json:"go"`
	Date   string `json:"date"`
	Load   string `json:"loadBefore"`
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, %s, load before: %s", m.CPU, m.Cores, m.Memory, m.Go, m.Date, m.Load)
}

func thisMachine() machine {
	return machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly), Load: load(),
	}
}

// field returns the first value of a name in a file of /proc.
func field(path, name string) string {
	content, _ := os.ReadFile(path)
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func load() string {
	content, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(content))[:min(3, len(strings.Fields(string(content))))], " ")
}
