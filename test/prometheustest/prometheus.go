package prometheustest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// Server is a running Prometheus.
type Server struct {
	url     string
	process *devenv.Process
}

var httpClient = &http.Client{Timeout: time.Minute}

// Start runs a Prometheus with the content of prometheus.yml and returns when it is
// ready. Its files are in dir; relative paths in the configuration are relative to
// dir.
func Start(ctx context.Context, cache *devenv.Cache, dir, config string) (*Server, error) {
	programs, err := devenv.FindPrometheus(ctx, cache)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	port, err := devenv.FreePort()
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	s := &Server{url: "http://" + address}
	s.process, err = devenv.StartProgram(ctx, devenv.Program{
		Name: "prometheus", Dir: dir, Path: programs.Server, Limit: time.Minute,
		Args:  []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address},
		Ready: s.ready,
	})
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	return s, nil
}

// Stop stops the server.
func (s *Server) Stop() error { return s.process.Stop() }

func (s *Server) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/-/ready", nil)
	if err != nil {
		return err
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /-/ready: %s", res.Status)
	}
	return nil
}

// get decodes the data of a response into out.
func (s *Server) get(tb testing.TB, path string, out any) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	answer := struct {
		Error string
		Data  any
	}{Data: out}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Error != "" {
		tb.Fatalf("Prometheus %s: %s: %v", path, raw, err)
	}
}

// Sample is a series with its value.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates a query now and returns the samples that are numbers.
func (s *Server) Query(tb testing.TB, query string) []Sample {
	tb.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	s.get(tb, "/api/v1/query?query="+url.QueryEscape(query), &data)
	var all []Sample
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			all = append(all, Sample{r.Metric, v})
		}
	}
	return all
}

// Names returns the names of all stored metrics.
func (s *Server) Names(tb testing.TB) (names []string) {
	tb.Helper()
	s.get(tb, "/api/v1/label/__name__/values", &names)
	return names
}

// Alert is a loaded alerting rule.
type Alert struct {
	Name, Query, Type string
	// State is inactive, pending or firing. Health is ok if the rule can be evaluated.
	State, Health, LastError string
}

// Alerts returns all alerting rules.
func (s *Server) Alerts(tb testing.TB) []Alert {
	tb.Helper()
	var data struct{ Groups []struct{ Rules []Alert } }
	s.get(tb, "/api/v1/rules", &data)
	var all []Alert
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Type == "alerting" {
				all = append(all, r)
			}
		}
	}
	return all
}

// Target is a scrape target.
type Target struct {
	Labels            map[string]string
	Health, LastError string
}

// Targets returns all active scrape targets.
func (s *Server) Targets(tb testing.TB) []Target {
	tb.Helper()
	var data struct{ ActiveTargets []Target }
	s.get(tb, "/api/v1/targets?state=active", &data)
	return data.ActiveTargets
}
