package node

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

// TestPlaces: no two nodes have an address in common, and each has its own
// where it should be.
func TestPlaces(t *testing.T) {
	t.Parallel()
	var taken []netip.Prefix
	tests := netip.MustParsePrefix("198.18.0.0/15")
	for i := range devenv.MaxNodes {
		p := placeAt(i)
		services, pods := netip.MustParsePrefix(p.services), netip.MustParsePrefix(p.pods)
		link := netip.MustParsePrefix(p.host + "/30").Masked()
		for _, network := range []netip.Prefix{services, pods, link} {
			if network != network.Masked() || !tests.Contains(network.Addr()) {
				t.Errorf("place %d: %s is no network of %s", i, network, tests)
			}
			for _, other := range taken {
				if network.Overlaps(other) {
					t.Errorf("place %d: %s overlaps %s", i, network, other)
				}
			}
			taken = append(taken, network)
		}
		for name, address := range map[string]string{"API service": p.apiService, "DNS": p.dns} {
			if !services.Contains(netip.MustParseAddr(address)) {
				t.Errorf("place %d: %s at %s, which is not in %s", i, name, address, services)
			}
		}
		if !link.Contains(netip.MustParseAddr(p.node)) {
			t.Errorf("place %d: the node's address %s is not on the link %s", i, p.node, link)
		}
	}
}

// TestNodeConfig: what is written can be read, and knows where it is.
func TestNodeConfig(t *testing.T) {
	t.Parallel()
	p := placeAt(3)
	n := &Node{
		dir: t.TempDir(), place: p, Kube: &kube.ControlPlane{Dir: "/kube", PKI: kube.PKI{PKI: devenv.PKI{Dir: "/kube/pki"}}},
		files: nodeFiles{binaries: map[string]string{}},
	}
	for _, b := range nodePrograms {
		n.files.binaries[b.Name] = "/cache/" + b.Name
	}
	if err := n.writeConfig(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"containerd.toml":       {n.dir + "/plugins", pauseImage},
		"cni/10-mnemo.conflist": {p.pods},
		"kubelet.yaml":          {"/kube/pki/node.crt", "cgroupRoot: /mnemo3", p.dns},
		"kube-proxy.yaml":       {"/kube/proxy.kubeconfig", p.pods, p.node},
		"resolv.conf":           {"nameserver"},
	} {
		data, err := os.ReadFile(n.path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(data), w) {
				t.Errorf("%s does not say %q:\n%s", name, w, data)
			}
		}
		var parsed map[string]any
		if filepath.Ext(name) != ".toml" && filepath.Ext(name) != ".conf" && yaml.Unmarshal(data, &parsed) != nil {
			t.Errorf("%s cannot be read:\n%s", name, data)
		}
	}
}

// TestProcessesOf checks that a node's programs are recognized by their arguments.
func TestProcessesOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read wait", dir+"/node/kubelet.yaml")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for want := 1; want >= 0; want-- {
		found, err := processesOf(dir)
		if err != nil || len(found) != want {
			t.Errorf("processes %q, %v, want %d", found, err, want)
		}
		if want == 1 {
			_ = input.Close()
			_ = cmd.Wait() // read found nothing, which is a failure of sh
		}
	}
}

// TestWithoutRoot: what needs root says so in a sentence.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	err := NeedRoot(1000)
	if err == nil || !strings.Contains(err.Error(), "needs root") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want a sentence that says root is needed", err)
	}
	if err := NeedRoot(0); err != nil {
		t.Errorf("as root: %v", err)
	}
}

// TestCleanNode: what a crash leaves is found by its record and ended, whatever
// it has become: here a process that started another one and left.
func TestCleanNode(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // there is no node without root, and nothing of it to clean
	}
	dir := t.TempDir()
	p := placeAt(devenv.MaxNodes + 1) // nobody's
	p.name = "mnemotest" + strconv.Itoa(os.Getpid()%1000)
	t.Cleanup(func() { _ = errors.Join(p.group().remove(), p.disconnect()) })
	if err := p.group().create(); err != nil {
		t.Fatal(err)
	}
	if err := p.group().create(); !errors.Is(err, os.ErrExist) {
		t.Errorf("made again: %v, want to be told that it is there", err)
	}
	if err := p.record(dir); err != nil {
		t.Fatal(err)
	}
	if err := ipCommand([]string{"link", "add", p.name, "type", "veth", "peer", "name", p.name + "p"}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read go; sleep 1000 & echo $!")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.group().add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_, _ = input.Write([]byte("go\n"))
	var pid int // of a process whose parent is gone
	if _, err := fmt.Fscan(output, &pid); err != nil {
		t.Fatal(err)
	}
	if left, err := Left(dir, p.name); err != nil || len(left) < 2 {
		t.Errorf("left before: %q, %v, want a device and control groups", left, err)
	}
	if err := Clean(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if left, err := Left(dir, p.name); err != nil || len(left) != 0 {
		t.Errorf("left after: %q, %v, want nothing", left, err)
	}
	if _, err := devenv.StartTime(pid); !errors.Is(err, devenv.ErrEnded) {
		t.Errorf("process %d runs on: %v", pid, err)
	}
	_ = cmd.Wait() // it was killed, or had ended

	// Another node has the name now: it is not touched.
	if err := p.group().create(); err != nil {
		t.Fatal(err)
	}
	if err := Clean(t.Context(), dir); err != nil || p.group().id() == "" {
		t.Errorf("cleaning after one node removed another's group, %v", err)
	}
}
