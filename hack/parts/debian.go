package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoPackages is when a distribution has no Debian packages.
var errNoPackages = errors.New("this machine has no apt-get")

// unpackDebian downloads packages of the distribution and unpacks them into dir
// without installing them. It keeps apt's lists to itself, so that it works for
// any user and changes nothing of the machine's.
func unpackDebian(ctx context.Context, dir string, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errNoPackages
	}
	apt := filepath.Join(dir, "apt")
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, sub), 0o755); err != nil {
			return fmt.Errorf("create apt's directories: %w", err)
		}
	}
	options := []string{
		"-qq", "-o", "Dir::State=" + filepath.Join(apt, "state"), "-o", "Dir::Cache=" + filepath.Join(apt, "cache"),
		"-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=",
	}
	for _, step := range [][]string{
		append([]string{"apt-get"}, append(options, "update")...),
		append([]string{"apt-get"}, append(append(options, "download"), packages...)...),
	} {
		if err := runIn(ctx, apt, step); err != nil {
			return err
		}
	}
	found, err := filepath.Glob(filepath.Join(apt, "*.deb"))
	if err != nil || len(found) != len(packages) {
		return fmt.Errorf("apt-get left %d packages instead of %d", len(found), len(packages))
	}
	for _, file := range found {
		if err := runIn(ctx, apt, []string{"dpkg-deb", "-x", file, dir}); err != nil {
			return err
		}
	}
	return os.RemoveAll(apt)
}

func runIn(ctx context.Context, dir string, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command[0]), err, strings.TrimSpace(string(out)))
	}
	return nil
}
