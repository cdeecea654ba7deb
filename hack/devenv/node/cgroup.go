package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroup is the name of a control group at the root of each hierarchy. Version 1
// has a hierarchy per resource, version 2 a single one. The processes of pods are
// below the group, those of the node in its child "node".
type cgroup string

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies returns the root of each hierarchy.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no control groups at %s: mount them", cgroupRoot)
	}
	var roots []string
	for _, f := range found {
		// Some are links to a hierarchy with several resources.
		root, err := filepath.EvalSymlinks(filepath.Dir(f))
		if err != nil {
			return nil, fmt.Errorf("find control groups: %w", err)
		}
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

func (g cgroup) dirs() ([]string, error) {
	roots, err := hierarchies()
	for i := range roots {
		roots[i] = filepath.Join(roots[i], string(g))
	}
	return roots, err
}

// create creates the group in every hierarchy. It returns os.ErrExist if the
// first hierarchy already has it.
func (g cgroup) create() error {
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	for i, dir := range dirs {
		for _, sub := range []string{dir, filepath.Join(dir, "node")} {
			if err := os.Mkdir(sub, 0o755); err != nil && (i == 0 || !errors.Is(err, os.ErrExist)) {
				return fmt.Errorf("create control group: %w", err)
			}
		}
		// In cgroup version 1, a new group has no CPUs until they are assigned.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
			if err != nil {
				continue // another hierarchy has this file
			}
			for _, sub := range []string{dir, filepath.Join(dir, "node")} {
				if err := os.WriteFile(filepath.Join(sub, name), value, 0o644); err != nil {
					return fmt.Errorf("prepare control group: %w", err)
				}
			}
		}
	}
	return nil
}

// id returns an identifier that distinguishes this group from earlier and later
// groups of the same name, or "" if the group does not exist.
func (g cgroup) id() string {
	dirs, err := g.dirs()
	if err != nil || g == "" {
		return ""
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dirs[0], &st); err != nil {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d of %s", st.Ino, bytes.TrimSpace(boot))
}

// add moves a process of the node into the group, with all its future children.
// In version 1 it does so only in the pids hierarchy, so that the limits of the
// machine apply to the process.
func (g cgroup) add(pid int) error {
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		root := filepath.Base(filepath.Dir(dir))
		if len(dirs) > 1 && !strings.Contains(root, "pids") {
			continue
		}
		err := os.WriteFile(filepath.Join(dir, "node", "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("add process to control group: %w", err)
		}
	}
	return nil
}

// processes returns the ids of all processes in the group.
func (g cgroup) processes() ([]int, error) {
	dirs, err := g.dirs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // the group was removed concurrently
			}
			data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for line := range bytes.Lines(data) {
				if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// kill kills every process of the group except the given ones, and returns when
// they have ended.
func (g cgroup) kill(except ...int) error {
	for deadline := time.Now().Add(15 * time.Second); ; {
		pids, err := g.processes()
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(except, pid) })
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end after SIGKILL", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		<-time.After(50 * time.Millisecond)
	}
}

// remove kills all processes in the group and removes it.
func (g cgroup) remove() error {
	if g == "" {
		return nil
	}
	if err := g.kill(); err != nil {
		return err
	}
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		var groups []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		for _, path := range slices.Backward(groups) {
			errs = append(errs, removeGroup(path))
		}
	}
	return errors.Join(errs...)
}

// removeGroup removes a group. It retries, because a killed process leaves its
// group with a delay.
func removeGroup(path string) error {
	for deadline := time.Now().Add(5 * time.Second); ; {
		err := syscall.Rmdir(path)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", path, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}
