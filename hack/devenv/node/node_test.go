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

func TestSlotNetworksDoNotOverlap(t *testing.T) {
	t.Parallel()
	var used []netip.Prefix
	tests := netip.MustParsePrefix("198.18.0.0/15")
	for i := range devenv.MaxNodes {
		p := slotAt(i)
		services, pods := netip.MustParsePrefix(p.services), netip.MustParsePrefix(p.pods)
		link := netip.MustParsePrefix(p.host + "/30").Masked()
		for _, network := range []netip.Prefix{services, pods, link} {
			if network != network.Masked() || !tests.Contains(network.Addr()) {
				t.Errorf("slot %d: %s is not a network in %s", i, network, tests)
			}
			for _, other := range used {
				if network.Overlaps(other) {
					t.Errorf("slot %d: %s overlaps %s", i, network, other)
				}
			}
			used = append(used, network)
		}
		for name, address := range map[string]string{"API service": p.apiService, "DNS": p.dns} {
			if !services.Contains(netip.MustParseAddr(address)) {
				t.Errorf("slot %d: address %s of %s is not in %s", i, address, name, services)
			}
		}
		if !link.Contains(netip.MustParseAddr(p.node)) {
			t.Errorf("slot %d: the node's address %s is not on the link %s", i, p.node, link)
		}
	}
}

func TestWriteConfig(t *testing.T) {
	t.Parallel()
	p := slotAt(3)
	n := &Node{
		dir: t.TempDir(), slot: p, Kube: &kube.ControlPlane{Dir: "/kube", PKI: kube.PKI{PKI: devenv.PKI{Dir: "/kube/pki"}}},
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
				t.Errorf("%s does not contain %q:\n%s", name, w, data)
			}
		}
		var parsed map[string]any
		if filepath.Ext(name) != ".toml" && filepath.Ext(name) != ".conf" && yaml.Unmarshal(data, &parsed) != nil {
			t.Errorf("%s is not valid YAML:\n%s", name, data)
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
			_ = cmd.Wait() // sh fails because read reaches the end of its input
		}
	}
}

func TestNeedRoot(t *testing.T) {
	t.Parallel()
	err := NeedRoot(1000)
	if err == nil || !strings.Contains(err.Error(), "needs root") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that says that root is needed", err)
	}
	if err := NeedRoot(0); err != nil {
		t.Errorf("as root: %v", err)
	}
}

// TestClean removes what a crashed program left of a node, including an orphan
// that is found only by its control group.
func TestClean(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can run a node
	}
	dir := t.TempDir()
	p := slotAt(devenv.MaxNodes + 1) // not used by a node
	p.name = "mnemotest" + strconv.Itoa(os.Getpid()%1000)
	t.Cleanup(func() { _ = errors.Join(p.group().remove(), p.disconnect()) })
	if err := p.group().create(); err != nil {
		t.Fatal(err)
	}
	if err := p.group().create(); !errors.Is(err, os.ErrExist) {
		t.Errorf("second create: error %v, want os.ErrExist", err)
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
	var pid int // of a process whose parent has ended
	if _, err := fmt.Fscan(output, &pid); err != nil {
		t.Fatal(err)
	}
	record, err := ReadSlotRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := Leftovers(dir, record); err != nil || len(found) < 2 {
		t.Errorf("leftovers before Clean: %q, %v, want a device and control groups", found, err)
	}
	if err := Clean(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if found, err := Leftovers(dir, record); err != nil || len(found) != 0 {
		t.Errorf("leftovers after Clean: %q, %v, want none", found, err)
	}
	if _, err := devenv.StartTime(pid); !errors.Is(err, devenv.ErrEnded) {
		t.Errorf("process %d still runs: %v", pid, err)
	}
	_ = cmd.Wait() // it was killed, or had ended

	// Another node now has the name and must not be affected.
	if err := p.group().create(); err != nil {
		t.Fatal(err)
	}
	if err := Clean(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if p.group().id() == "" {
		t.Error("Clean removed the control group of another node")
	}
	if found, err := Leftovers(dir, record); err != nil || len(found) != 0 {
		t.Errorf("leftovers while another node has the name: %q, %v, want none", found, err)
	}
}
