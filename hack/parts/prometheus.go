package parts

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
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

func fillPrometheus(ctx context.Context, dir string) error {
	if err := unpackDebian(ctx, dir, "prometheus"); err != nil {
		return fmt.Errorf("%w: put prometheus and promtool in the PATH instead", err)
	}
	if err := runIn(ctx, dir, []string{filepath.Join(dir, "usr", "bin", "promtool"), "--version"}); err != nil {
		return fmt.Errorf("the downloaded program does not run on this machine: %w", err)
	}
	return nil
}
