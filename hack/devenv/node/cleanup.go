package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// Clean stops the processes and removes the network device and control group that
// a crashed program left of the node in dir. It does not remove dir.
func Clean(ctx context.Context, dir string) error {
	_, err := devenv.StopAll(ctx, dir)
	s, slotErr := recordedSlot(dir)
	if slotErr != nil {
		return errors.Join(err, slotErr)
	}
	return errors.Join(err, s.group().remove(), s.disconnect())
}

// Leftovers lists processes, mounts, network devices and control groups of the
// node that ran in dir. slot is its record, or empty if that is unknown. The list
// is empty after Stop or Clean, also if another node has the slot by then.
func Leftovers(dir string, slot SlotRecord) ([]string, error) {
	var found []string
	if slot.Name != "" && !slot.isReused() {
		if _, err := net.InterfaceByName(slot.Name); err == nil {
			found = append(found, "network device "+slot.Name)
		}
		groups, err := cgroup(slot.Name).dirs()
		if err != nil {
			return nil, err
		}
		for _, group := range slices.DeleteFunc(groups, func(g string) bool { return !devenv.IsDir(g) }) {
			found = append(found, "control group "+group)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	for line := range bytes.Lines(mounts) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && strings.HasPrefix(fields[1]+"/", dir+"/") {
			found = append(found, "mount "+fields[1])
		}
	}
	processes, err := processesOf(dir)
	return append(found, processes...), err
}

// processesOf lists processes that have dir in their arguments, or run in a
// container whose files are in dir.
func processesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []string
	for _, e := range entries {
		pid := e.Name()
		if pid[0] < '0' || pid[0] > '9' {
			continue
		}
		if pid == fmt.Sprint(os.Getpid()) || pid == fmt.Sprint(os.Getppid()) {
			continue
		}
		command, _ := os.ReadFile("/proc/" + pid + "/cmdline") // missing if the process has ended
		mounts, _ := os.ReadFile("/proc/" + pid + "/mounts")
		root, _, _ := bytes.Cut(mounts, []byte("\n"))
		inside := bytes.HasPrefix(root, []byte("overlay / ")) && bytes.Contains(root, []byte(dir+"/"))
		if inside || bytes.Contains(command, []byte(dir+"/node/")) {
			found = append(found, "process "+pid+" "+string(bytes.ReplaceAll(command, []byte{0}, []byte(" "))))
		}
	}
	return found, nil
}
