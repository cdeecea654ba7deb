package devenv

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Prometheus holds the paths of Prometheus' two programs.
type Prometheus struct {
	Server, Promtool string
}

// FindPrometheus returns the installed Prometheus. Without one it downloads the
// distribution's package and unpacks it into the cache: a build from source takes
// eight minutes.
func FindPrometheus(ctx context.Context, cache *Cache) (Prometheus, error) {
	server, err := exec.LookPath("prometheus")
	promtool, promtoolErr := exec.LookPath("promtool")
	if err == nil && promtoolErr == nil {
		return Prometheus{Server: server, Promtool: promtool}, nil
	}
	dir, err := EnsureDebian(ctx, cache, Entry{
		Key:   "prometheus",
		Title: "Prometheus",
		Doing: "downloading the distribution's package, 20 MB, once",
		Space: 400 << 20,
		Fill:  checkPrometheus,
	}, "prometheus")
	if err != nil {
		return Prometheus{}, fmt.Errorf("%w: put prometheus and promtool in the PATH instead", err)
	}
	return Prometheus{Server: filepath.Join(dir, "usr", "bin", "prometheus"), Promtool: filepath.Join(dir, "usr", "bin", "promtool")}, nil
}

func checkPrometheus(ctx context.Context, dir string) error {
	if _, err := RunIn(ctx, dir, filepath.Join(dir, "usr", "bin", "promtool"), "--version"); err != nil {
		return fmt.Errorf("the downloaded program does not run on this machine: %w", err)
	}
	return nil
}

// discovery is Prometheus' Kubernetes service discovery, which Debian's
// Prometheus is built without.
var discovery = Built{
	Name: "discover", Package: ".", Module: "discover", Flags: []string{"-ldflags", "-s -w"},
	Key: "discover", Title: "discovery for Prometheus", Estimate: "about 1 min on 2 cores",
}

// Discovery returns the path of hack/discover and builds it if it is not cached.
func Discovery(ctx context.Context, cache *Cache) (string, error) {
	programs, err := EnsureBuilt(ctx, cache, []Built{discovery})
	return programs[discovery.Name], err
}
