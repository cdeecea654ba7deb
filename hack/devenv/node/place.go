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

// place is the name and the networks of one node among those that may run on a
// machine at the same time. The addresses are of 198.18.0.0/15, which is set
// aside for test networks, so that they are nobody's real ones.
type place struct {
	// name is that of the device that leads to the node, and of its control
	// group.
	name string
	// host and node are the two ends of the link.
	host, node string
	// services and pods are the networks behind it.
	services, pods  string
	apiService, dns string
}

func placeAt(i int) place {
	at := func(third, fourth int) string { return devenv.NodeNetwork(i, third, fourth) }
	return place{
		name: "mnemo" + strconv.Itoa(i),
		host: devenv.NodeHost(i), node: at(0, 2),
		pods:     at(4, 0) + "/24",
		services: at(8, 0) + "/22", apiService: at(8, 1), dns: at(8, 10),
	}
}

// claimPlace returns the first that no node has. Who makes its control group
// has it: of two that start at the same time one does.
func claimPlace() (place, error) {
	for i := range devenv.MaxNodes {
		p := placeAt(i)
		if _, err := net.InterfaceByName(p.name); err == nil {
			continue
		}
		err := p.group().create()
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return place{}, errors.Join(err, p.group().remove())
		}
	}
	return place{}, fmt.Errorf("%d clusters run on this machine: take one down with `make cluster-down`", devenv.MaxNodes)
}

// group is the control group of the node's processes, nothing for no place.
func (p place) group() cgroup { return cgroup(p.name) }

func (p place) site() kube.Site {
	return kube.Site{Address: p.host, Services: p.services, Pods: p.pods, APIService: p.apiService, Node: p.node}
}

const placeFile = "place.json"

// placeRecord is what placeFile holds. The name alone is not enough: after a
// crash and a restart another node may have it.
type placeRecord struct {
	Name  string `json:"name"`
	Group string `json:"group"` // cgroup.id
}

// record keeps the place where recordedPlace finds it after a crash.
func (p place) record(dir string) error {
	data, err := json.Marshal(placeRecord{Name: p.name, Group: p.group().id()})
	if err != nil {
		return fmt.Errorf("record the node: %w", err)
	}
	if err := devenv.WriteFile(filepath.Join(dir, placeFile), data, 0o644); err != nil {
		return fmt.Errorf("record the node: %w", err)
	}
	return nil
}

// recordedPlace returns that of the node that runs in dir, or was left there by
// a crash; none if nothing is left of it.
func recordedPlace(dir string) (place, error) {
	data, err := os.ReadFile(filepath.Join(dir, placeFile))
	if errors.Is(err, os.ErrNotExist) {
		return place{}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("read the node's record: %w", err)
	}
	var r placeRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return place{}, fmt.Errorf("read the node's record: %w", err)
	}
	if id := cgroup(r.Name).id(); id == "" || id != r.Group {
		return place{}, nil
	}
	return place{name: r.Name}, nil
}

// connect makes a link between the node's network, which t is in, and ours,
// and routes to what is behind it. No other route of the machine is touched.
func (p place) connect(t *devenv.Thread) error {
	self := strconv.Itoa(os.Getpid())
	inside := [][]string{
		{"link", "add", "eth0", "type", "veth", "peer", "name", p.name, "netns", self},
		{"address", "add", p.node + "/30", "dev", "eth0"},
		{"link", "set", "lo", "up"},
		{"link", "set", "eth0", "up"},
		{"route", "add", "default", "via", p.host},
	}
	outside := [][]string{
		{"address", "add", p.host + "/30", "dev", p.name},
		{"link", "set", p.name, "up"},
		{"route", "add", p.services, "via", p.node, "dev", p.name},
		{"route", "add", p.pods, "via", p.node, "dev", p.name},
	}
	var err error
	t.Do(func() {
		err = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
		// The default route needs the other end.
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

// disconnect removes the link, and with it the routes over it.
func (p place) disconnect() error {
	if p.name == "" {
		return nil
	}
	if _, err := net.InterfaceByName(p.name); err != nil {
		return nil //nolint:nilerr // it is gone, which is what was wanted
	}
	err := ipCommand([]string{"link", "delete", p.name})
	if _, look := net.InterfaceByName(p.name); look != nil {
		return nil //nolint:nilerr // it went with the namespace meanwhile
	}
	return err
}

// ipCommand runs iproute2's ip in the network of the calling thread.
func ipCommand(args []string) error {
	cmd := exec.CommandContext(context.Background(), "ip", args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
