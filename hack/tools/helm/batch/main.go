// Command batch renders a chart many times in one process: tests of the chart's values would otherwise start Helm more
// than a thousand times. Standard input has a JSON object of values per rendering, and standard output has a JSON object
// with the manifests or the error of each, in the same order.
//
//	batch CHART NAMESPACE KUBE_VERSION < values.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// result is the outcome of one rendering.
type result struct {
	Manifests string `json:"manifests"`
	Error     string `json:"error"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("usage: batch CHART NAMESPACE KUBE_VERSION < values.jsonl")
	}
	c, err := loader.Load(args[0])
	if err != nil {
		return err
	}
	capabilities := *chartutil.DefaultCapabilities
	version, err := chartutil.ParseKubeVersion(args[2])
	if err != nil {
		return err
	}
	capabilities.KubeVersion = *version
	values, err := readValues(in)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "mnemo", Namespace: args[1], Revision: 1, IsInstall: true}
	results := make([]result, len(values))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				manifests, err := render(c, values[i], release, &capabilities)
				results[i].Manifests = manifests
				if err != nil {
					results[i].Error = err.Error()
				}
			}
		})
	}
	for i := range values {
		next <- i
	}
	close(next)
	workers.Wait()
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	for _, r := range results {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// readValues parses values as Helm does: numbers are not integers.
func readValues(in io.Reader) ([]map[string]any, error) {
	var all []map[string]any
	for d := json.NewDecoder(in); ; {
		var values map[string]any
		if err := d.Decode(&values); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("values %d: %w", len(all)+1, err)
		}
		all = append(all, values)
	}
}

func render(c *chart.Chart, values map[string]any, release chartutil.ReleaseOptions, caps *chartutil.Capabilities) (string, error) {
	top, err := chartutil.ToRenderValues(c, values, release, caps)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, top)
	if err != nil {
		return "", err
	}
	var names []string
	for name := range files {
		if !strings.HasPrefix(path.Base(name), "_") && path.Ext(name) != ".txt" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", name, files[name])
	}
	return b.String(), nil
}
