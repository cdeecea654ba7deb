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

// Prometheus is where its two programs are.
type Prometheus struct {
	Server, Promtool string
}

// FindPrometheus returns the machine's Prometheus, or else that of the
// distribution's package, downloaded the first time and not installed: built
// from source it would take eight minutes.
func FindPrometheus(ctx context.Context, cache *Cache) (Prometheus, error) {
	server, err := exec.LookPath("prometheus")
	promtool, promtoolErr := exec.LookPath("promtool")
	if err == nil && promtoolErr == nil {
		return Prometheus{Server: server, Promtool: promtool}, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return Prometheus{}, errors.New("prometheus and promtool are missing: put them in the PATH")
	}
	dir, err := cache.Ensure(ctx, Entry{
		Key:   "prometheus-debian",
		Title: "Prometheus",
		Doing: "downloading the distribution's package, 20 MB, once",
		Space: 400 << 20,
		Fill:  fillPrometheus,
	})
	if err != nil {
		return Prometheus{}, err
	}
	return Prometheus{Server: filepath.Join(dir, "usr", "bin", "prometheus"), Promtool: filepath.Join(dir, "usr", "bin", "promtool")}, nil
}

// fillPrometheus keeps apt's lists to itself, so that it works for any user and
// changes nothing of the machine's.
func fillPrometheus(ctx context.Context, dir string) error {
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
		append([]string{"apt-get"}, append(options, "download", "prometheus")...),
	} {
		if err := runIn(ctx, apt, step); err != nil {
			return fmt.Errorf("%w: put prometheus and promtool in the PATH instead", err)
		}
	}
	found, err := filepath.Glob(filepath.Join(apt, "prometheus_*.deb"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("apt-get left %d packages of Prometheus instead of one", len(found))
	}
	if err := runIn(ctx, apt, []string{"dpkg-deb", "-x", found[0], dir}); err != nil {
		return err
	}
	if err := runIn(ctx, dir, []string{filepath.Join(dir, "usr", "bin", "promtool"), "--version"}); err != nil {
		return fmt.Errorf("the downloaded program does not run on this machine: %w", err)
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
