package faults_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// injector injects the faults of a plan.
type injector struct {
	*stack
	*history
	begun time.Time
	wait  sync.WaitGroup // for repairs that take long

	milvusDown sync.Mutex // from a crash of Milvus until it has started
}

// run injects the plan and repairs everything. Processes that exit are
// started again, as Kubernetes does.
func (n *injector) run(plan []fault) {
	repairs := map[time.Duration]func(){} // by time
	for len(plan) > 0 || len(repairs) > 0 {
		now := time.Since(n.begun)
		for at, repair := range repairs {
			if at <= now {
				delete(repairs, at)
				repair()
			}
		}
		if len(plan) > 0 && plan[0].At <= now {
			n.injected(plan[0].String())
			repair := n.inject(plan[0])
			repairs[time.Since(n.begun)+plan[0].For] = repair
			plan = plan[1:]
		}
		n.restartEnded()
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the plan is in real time
	}
	n.wait.Wait()
}

// inject injects a fault and returns its repair.
func (n *injector) inject(f fault) (repair func()) {
	switch f.Kind {
	case "kill":
		return n.kill(f.Target)
	case "pause":
		return pause(n.processes(f.Target))
	case "restart", "crash":
		return n.restart(f)
	case "fail commits":
		return n.set("fail_commit", strings.TrimPrefix(f.Target, "postgres "))
	case "fill disk":
		if n.disk != nil {
			return n.disk.fill(n.t)
		}
		return n.set("fail_write", "53100")
	case "step clock":
		return n.clock.step(n.t, strings.TrimPrefix(f.Target, "postgres "))
	case "embedder":
		n.embedder.set(n.embedder.faults()[f.Target])
		return func() { n.embedder.set(nil) }
	}
	return n.disturb(f)
}

// kill ends a process like a lost node.
func (n *injector) kill(target string) func() {
	if target == "operator" {
		n.operator.Kill()
		return func() {} // run starts it again
	}
	n.servers[number(target)].Kill()
	return func() {}
}

func number(target string) int { return int(target[len(target)-1] - '0') }

// processes returns the processes of a part.
func (n *injector) processes(target string) []int {
	switch target {
	case "operator":
		return []int{n.operator.PID()}
	case "postgres":
		return family(n.postgres.PID())
	case "milvus":
		return []int{n.milvus.PID()}
	}
	return []int{n.servers[number(target)].PID()}
}

// family returns a process and its children.
func family(pid int) []int {
	out := []int{pid}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return out
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			out = append(out, child)
		}
	}
	return out
}

func pause(pids []int) func() {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// restart stops a server, gracefully or not.
func (n *injector) restart(f fault) func() {
	switch {
	case f.Target == "milvus":
		if !n.milvusDown.TryLock() { // it is starting
			return func() {}
		}
		_ = n.milvus.Kill()
		return func() {
			n.wait.Go(func() {
				defer n.milvusDown.Unlock()
				if err := n.milvus.Start(context.Background()); err != nil {
					n.t.Error(err)
				}
			})
		}
	case f.Target == "postgres" && f.Kind == "crash":
		_ = n.postgres.Kill()
		return n.startPostgres
	case f.Target == "postgres":
		if err := n.postgres.Stop(); err != nil {
			n.t.Error(err)
		}
		return n.startPostgres
	}
	n.servers[number(f.Target)].Signal(n.t, syscall.SIGTERM)
	return func() {} // run starts it again
}

// toxics are the disturbances of connections. A response is cut after a number of bytes
// that is inside the headers, the body, or a later response of the connection.
var toxics = map[string]struct {
	name, stream string
	attributes   map[string]int64
}{
	"cut responses":     {"limit_data", "downstream", map[string]int64{"bytes": 2500}},
	"reset connections": {"reset_peer", "downstream", map[string]int64{"timeout": 5}},
	"lose packets":      {"timeout", "upstream", map[string]int64{"timeout": 0}},
	"delay packets":     {"latency", "downstream", map[string]int64{"latency": 5}},
}

// disturb disturbs the connections to a server.
func (n *injector) disturb(f fault) func() {
	p, toxic := n.proxies[f.Target], toxics[f.Kind]
	body, err := json.Marshal(map[string]any{
		"name": f.Kind, "type": toxic.name, "stream": toxic.stream, "toxicity": 1.0, "attributes": toxic.attributes,
	})
	if err == nil {
		_, err = p.Toxics.AddToxicJson(strings.NewReader(string(body)))
	}
	if err != nil {
		n.t.Errorf("%s: %v", f, err)
	}
	return func() {
		if err := p.Toxics.RemoveToxic(context.Background(), f.Kind); err != nil {
			n.t.Errorf("repair %s: %v", f, err)
		}
	}
}
