package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hiddenDirs are private directories in the node's mount namespace, because its
// programs write there regardless of their configuration.
var hiddenDirs = []string{"/var/lib", "/var/log", "/run"}

// kernelSettings apply to the whole machine, but the kubelet sets them. In the
// node's mount namespace they are replaced by files with the expected values.
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
			return errors.New("creating namespaces is not permitted, as in most containers: use a physical or virtual machine")
		}
		return fmt.Errorf("create namespaces: %w", err)
	}
	// Mounts in this namespace are invisible outside.
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
		return fmt.Errorf("open the node's mount namespace: %w", err)
	}
	defer namespace.Close()
	// setns fails for a thread that shares its working directory with others.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare working directory: %w", err)
	}
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the node's mount namespace: %w", err)
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
