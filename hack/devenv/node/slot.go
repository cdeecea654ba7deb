package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

// slot is the name and the networks of one of the nodes that can run on a machine
// at the same time. The addresses are in 198.18.0.0/15, which is reserved for
// tests, so they do not conflict with real ones.
type slot struct {
	// name is the name of the network device and of the control group.
	name string
	// host and node are the addresses of the two ends of the link.
	host, node string
	// services and pods are the cluster's networks, which the link routes to.
	services, pods  string
	apiService, dns string
}

func slotAt(i int) slot {
	at := func(third, fourth int) string { return devenv.NodeNetwork(i, third, fourth) }
	return slot{
		name: "mnemo" + strconv.Itoa(i),
		host: devenv.NodeHost(i), node: at(0, 2),
		pods:     at(4, 0) + "/24",
		services: at(8, 0) + "/22", apiService: at(8, 1), dns: at(8, 10),
	}
}

// claimSlot returns the first free slot. Creating its control group claims it,
// so two programs that start at the same time get different ones.
func claimSlot() (slot, error) {
	for i := range devenv.MaxNodes {
		s := slotAt(i)
		if _, err := net.InterfaceByName(s.name); err == nil {
			continue
		}
		err := s.group().create()
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return slot{}, errors.Join(err, s.group().remove())
		}
	}
	return slot{}, fmt.Errorf("%d clusters are running on this machine: delete one with `make cluster-down`", devenv.MaxNodes)
}

// group returns the control group of the node's processes.
func (s slot) group() cgroup { return cgroup(s.name) }

func (s slot) site() kube.Site {
	return kube.Site{Address: s.host, Services: s.services, Pods: s.pods, APIService: s.apiService, Node: s.node}
}

const slotFile = "slot.json"

// SlotRecord identifies the slot of a node, and is the content of slotFile. The name
// alone is not enough, because another node can have it afterwards.
type SlotRecord struct {
	Name  string `json:"name"`
	Group string `json:"group"` // cgroup.id
}

// isReused reports whether another node has the slot now.
func (r SlotRecord) isReused() bool {
	id := cgroup(r.Name).id()
	return id != "" && id != r.Group
}

// record writes slotFile, from which recordedSlot reads the slot after a crash.
func (s slot) record(dir string) error {
	data, err := json.Marshal(SlotRecord{Name: s.name, Group: s.group().id()})
	if err != nil {
		return fmt.Errorf("record the node: %w", err)
	}
	if err := devenv.WriteFile(filepath.Join(dir, slotFile), data, 0o644); err != nil {
		return fmt.Errorf("record the node: %w", err)
	}
	return nil
}

// ReadSlotRecord returns the record of the node in dir. It is empty if there is none.
func ReadSlotRecord(dir string) (r SlotRecord, err error) {
	data, err := os.ReadFile(filepath.Join(dir, slotFile))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the node's record: %w", err)
	}
	return r, nil
}

// recordedSlot returns the slot of the node in dir, which may have crashed. It
// is empty if the control group no longer exists or belongs to another node.
func recordedSlot(dir string) (slot, error) {
	r, err := ReadSlotRecord(dir)
	if err != nil {
		return slot{}, err
	}
	if id := cgroup(r.Name).id(); id == "" || id != r.Group {
		return slot{}, nil
	}
	return slot{name: r.Name}, nil
}

// connect links the node's network namespace, which t is in, to that of the
// machine, and adds routes to the cluster's networks. It changes no other routes.
func (s slot) connect(t *devenv.Thread) error {
	self := strconv.Itoa(os.Getpid())
	inside := [][]string{
		{"link", "add", "eth0", "type", "veth", "peer", "name", s.name, "netns", self},
		{"address", "add", s.node + "/30", "dev", "eth0"},
		{"link", "set", "lo", "up"},
		{"link", "set", "eth0", "up"},
		{"route", "add", "default", "via", s.host},
	}
	outside := [][]string{
		{"address", "add", s.host + "/30", "dev", s.name},
		{"link", "set", s.name, "up"},
		{"route", "add", s.services, "via", s.node, "dev", s.name},
		{"route", "add", s.pods, "via", s.node, "dev", s.name},
	}
	var err error
	t.Do(func() {
		err = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
		// The default route is added last, because it needs the other end.
		for _, args := range inside[:4] {
			err = errors.Join(err, ipCommand(args))
		}
	})
	if err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	for _, args := range outside {
		if err := ipCommand(args); err != nil {
			return fmt.Errorf("connect the node: %w", err)
		}
	}
	t.Do(func() { err = ipCommand(inside[4]) })
	if err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	return nil
}

// disconnect removes the link and its routes.
func (s slot) disconnect() error {
	if s.name == "" {
		return nil
	}
	if _, err := net.InterfaceByName(s.name); err != nil {
		return nil //nolint:nilerr // it does not exist
	}
	err := ipCommand([]string{"link", "delete", s.name})
	if _, look := net.InterfaceByName(s.name); look != nil {
		return nil //nolint:nilerr // it was removed with the namespace
	}
	return err
}

// ipCommand runs iproute2's ip in the network namespace of the calling thread.
func ipCommand(args []string) error {
	cmd := exec.CommandContext(context.Background(), "ip", args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
