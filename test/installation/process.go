package installation

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Patience is the default timeout for an expected state.
const Patience = 3 * time.Minute

// Process is a running process of the program.
type Process struct {
	// URL is the address of `mnemo serve`. Metrics is the address of /metrics.
	URL, Metrics string
	// Ended is closed when the process has ended.
	Ended chan struct{}

	cmd *exec.Cmd
	log *journal
}

// journal collects the output of a process; it is safe for concurrent use.
type journal struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.buffer.Len() > maxJournal {
		j.buffer.Next(maxJournal / 2)
	}
	return j.buffer.Write(p)
}

// maxJournal is how much of the output is kept, in bytes.
const maxJournal = 16 << 20

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buffer.String()
}

// Operate starts `mnemo operator` with additional environment variables. It ends
// with the test at the latest.
func (i *Installation) Operate(tb testing.TB, env ...string) *Process {
	tb.Helper()
	return i.start(tb, "operator", append(env, "MNEMO_HEALTH_LISTEN=0"))
}

// Serve starts `mnemo serve` and waits until it is ready.
func (i *Installation) Serve(tb testing.TB, env ...string) *Process {
	tb.Helper()
	p := i.ServeAt(tb, testkit.FreeAddress(tb), env...)
	Eventually(tb, Patience, func() string {
		res, err := http.Get(p.URL + "/readyz") //nolint:noctx // it ends with the test
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return res.Status
		}
		return ""
	})
	return p
}

// ServeAt starts `mnemo serve` at an address, and does not wait for it.
func (i *Installation) ServeAt(tb testing.TB, address string, env ...string) *Process {
	tb.Helper()
	p := i.start(tb, "serve", append(env, "MNEMO_LISTEN="+address))
	p.URL = "http://" + address
	return p
}

func (i *Installation) start(tb testing.TB, command string, env []string) *Process {
	tb.Helper()
	address := testkit.FreeAddress(tb)
	p := &Process{Metrics: "http://" + address + "/metrics", Ended: make(chan struct{}), log: &journal{}}
	p.cmd = exec.Command(i.program, command) //nolint:noctx // it is killed explicitly
	p.cmd.Env = append(append(os.Environ(), i.env...), append(env, "MNEMO_METRICS_LISTEN="+address)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.Ended)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			log := p.log.String()
			tb.Logf("the end of the log of mnemo %s:\n%s", command, log[max(0, len(log)-6000):])
		}
	})
	return p
}

// Run runs a command of mnemo that must succeed, and returns its standard output.
func (i *Installation) Run(tb testing.TB, args ...string) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), i.program, args...)
	command.Env = append(os.Environ(), i.env...)
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		tb.Fatalf("mnemo %s: %v\n%s", strings.Join(args, " "), err, &failure)
	}
	return string(out)
}

// Kill kills the process and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Ended
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process.
func (p *Process) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

// Log returns the output of the process so far.
func (p *Process) Log() string { return p.log.String() }

// Count sums a metric's series whose labels contain the text. It returns 0 if the
// process does not respond.
func (p *Process) Count(name, labels string) float64 {
	res, err := http.Get(p.Metrics) //nolint:noctx // as above
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0
	}
	return Sum(string(raw), name, labels)
}

// Sum sums a metric's series of an exposition whose labels contain the text.
func Sum(exposition, name, labels string) (sum float64) {
	for line := range strings.Lines(exposition) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if found, _, _ := strings.Cut(series, "{"); ok && found == name && strings.Contains(series, labels) {
			var n float64
			if _, err := fmt.Sscan(value, &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// Used is the resource usage of a process.
type Used struct {
	Peak int64 // of memory, in bytes
	CPU  time.Duration
}

// Used returns the resource usage of the process from /proc.
func (p *Process) Used(tb testing.TB) Used {
	tb.Helper()
	var u Used
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &u.Peak); err != nil {
		tb.Fatalf("read VmHWM: %v", err)
	}
	u.Peak <<= 10
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		tb.Fatalf("read CPU time: %v", err)
	}
	u.CPU = time.Duration(user+system) * 10 * time.Millisecond // in hundredths of a second
	return u
}

// Eventually polls until check returns "", and fails with its last result.
func Eventually(tb testing.TB, within time.Duration, check func() string) {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for started := time.Now(); ; <-tick.C {
		problem := check()
		if problem == "" {
			return
		}
		if time.Since(started) > within {
			tb.Fatalf("not in %s: %s", within, problem)
		}
	}
}
