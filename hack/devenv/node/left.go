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

// Clean ends what a program that ran a node in dir left behind when it
// crashed; dir stays.
func Clean(ctx context.Context, dir string) error {
	_, err := devenv.StopAll(ctx, dir)
	p, placeErr := recordedPlace(dir)
	if placeErr != nil {
		return errors.Join(err, placeErr)
	}
	return errors.Join(err, p.group().remove(), p.disconnect())
}

// Left lists what is left on this machine of the node that ran in dir, by
// the name of its place if it is known: nothing after Stop or CleanNode.
func Left(dir, place string) ([]string, error) {
	var left []string
	if place != "" {
		if _, err := net.InterfaceByName(place); err == nil {
			left = append(left, "network device "+place)
		}
		groups, err := cgroup(place).dirs()
		if err != nil {
			return nil, err
		}
		for _, group := range slices.DeleteFunc(groups, func(g string) bool { return !devenv.IsDir(g) }) {
			left = append(left, "control group "+group)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("look for mounts: %w", err)
	}
	for line := range bytes.Lines(mounts) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && strings.HasPrefix(fields[1]+"/", dir+"/") {
			left = append(left, "mount "+fields[1])
		}
	}
	processes, err := processesOf(dir)
	return append(left, processes...), err
}

// Place returns the name of the place of the node that runs or ran in dir,
// nothing if none did.
func Place(dir string) (string, error) {
	p, err := recordedPlace(dir)
	return p.name, err
}

// processesOf lists processes that were told of dir, or run in a container whose
// files are in it.
func processesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for processes: %w", err)
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
		command, _ := os.ReadFile("/proc/" + pid + "/cmdline") // a process that has ended has none
		mounts, _ := os.ReadFile("/proc/" + pid + "/mounts")
		root, _, _ := bytes.Cut(mounts, []byte("\n"))
		inside := bytes.HasPrefix(root, []byte("overlay / ")) && bytes.Contains(root, []byte(dir+"/"))
		if inside || bytes.Contains(command, []byte(dir+"/node/")) {
			found = append(found, "process "+pid+" "+string(bytes.ReplaceAll(command, []byte{0}, []byte(" "))))
		}
	}
	return found, nil
}
