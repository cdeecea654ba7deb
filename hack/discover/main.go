// Command discover is the Kubernetes service discovery of Prometheus as a separate
// program, for builds of Prometheus without it such as Debian's:
//
//	discover CONFIG DIR
//
// CONFIG is a YAML list of jobs, each with job_name and kubernetes_sd_configs as in
// Prometheus' configuration. For each job the program keeps the file DIR/JOB.json
// up to date: the targets with all labels for relabeling, for file_sd_configs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"
)

// settle is the time for which changes are collected before they are written.
const settle = 100 * time.Millisecond

type job struct {
	Name       string                 `yaml:"job_name"`
	Kubernetes []*kubernetes.SDConfig `yaml:"kubernetes_sd_configs"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: discover CONFIG DIR")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "discover:", err)
		os.Exit(1)
	}
}

// run writes the discovered targets until the context ends.
func run(ctx context.Context, config, dir string) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var jobs []job
	if err := yaml.UnmarshalStrict(data, &jobs); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	registry := prometheus.NewRegistry()
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return fmt.Errorf("declare metrics: %w", err)
	}
	manager := discovery.NewManager(ctx, log, registry, metrics, discovery.Updatert(settle))
	if manager == nil {
		return errors.New("start discovery: see the log above")
	}
	all := map[string]discovery.Configs{}
	for _, j := range jobs {
		for _, c := range j.Kubernetes {
			all[j.Name] = append(all[j.Name], c)
		}
	}
	if err := manager.ApplyConfig(all); err != nil {
		return fmt.Errorf("apply configuration: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Run() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case found := <-manager.SyncCh():
			for name, groups := range found {
				if err := write(filepath.Join(dir, name+".json"), groups); err != nil {
					return err
				}
			}
		}
	}
}

// targets is an entry of a file for file_sd_configs: targets with common labels.
type targets struct {
	Targets []string       `json:"targets"`
	Labels  model.LabelSet `json:"labels"`
}

// write replaces a job's file atomically.
func write(file string, groups []*targetgroup.Group) error {
	all := []targets{}
	for _, g := range groups {
		for _, t := range g.Targets {
			all = append(all, targets{[]string{string(t[model.AddressLabel])}, g.Labels.Merge(t)})
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write targets: %w", err)
	}
	if err := os.WriteFile(file+".partial", data, 0o600); err != nil {
		return fmt.Errorf("write targets: %w", err)
	}
	return os.Rename(file+".partial", file)
}
