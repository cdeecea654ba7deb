package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hiddenDirs are of the node's own in its mount namespace: its programs write
// there whatever they are told.
var hiddenDirs = []string{"/var/lib", "/var/log", "/run"}

// kernelSettings are for the whole machine, and the kubelet sets them: in the
// node's mount namespace they are files that have these values already.
var kernelSettings = map[string]string{
	"/proc/sys/vm/overcommit_memory":      "1",
	"/proc/sys/vm/panic_on_oom":           "0",
	"/proc/sys/kernel/panic":              "10",
	"/proc/sys/kernel/panic_on_oops":      "1",
	"/proc/sys/kernel/keys/root_maxkeys":  "1000000",
	"/proc/sys/kernel/keys/root_maxbytes": "25000000",
}

// enter moves the calling thread to the node's namespaces.
func (n *Node) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		if errors.Is(err, unix.EPERM) {
			return errors.New("this machine does not allow namespaces to be made, as in most containers: use a machine or a virtual machine of your own")
		}
		return fmt.Errorf("make namespaces: %w", err)
	}
	// What is mounted here is not seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, dir := range hiddenDirs {
		own := filepath.Join(n.dir, "own", dir)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := bind(own, dir); err != nil {
			return err
		}
	}
	return n.shieldKernel()
}

// join moves the calling thread to the mount namespace of a process.
func join(pid int) error {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return fmt.Errorf("find the node's mounts: %w", err)
	}
	defer namespace.Close()
	// A thread that shares its working directory with others may not.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave the other threads: %w", err)
	}
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the node's mounts: %w", err)
	}
	return nil
}

func (n *Node) shieldKernel() error {
	for path, value := range kernelSettings {
		if _, err := os.Stat(path); err != nil {
			continue // this kernel has no such setting
		}
		own := filepath.Join(n.dir, "own", path)
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := os.WriteFile(own, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("write setting: %w", err)
		}
		if err := bind(own, path); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", from, to, err)
	}
	return nil
}
