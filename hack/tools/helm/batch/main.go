// Command batch renders a chart many times in one process: tests of the chart's values would otherwise start Helm more
// than a thousand times. Standard input has a JSON object of values per rendering, and standard output has a JSON object
// with the manifests or the error of each, in the same order.
//
//	batch CHART NAMESPACE KUBE_VERSION < values.jsonl
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
	log.SetOutput(io.Discard) // Helm's warnings about each value
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
	schema, err := compile(c.Schema)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "mnemo", Namespace: args[1], Revision: 1, IsInstall: true}
	// A few renderings wait until all before them are written.
	results := make([]chan result, len(values))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	slots := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	go func() {
		for i, v := range values {
			slots <- struct{}{}
			go func() {
				manifests, err := render(c, schema, v, release, &capabilities)
				r := result{Manifests: manifests}
				if err != nil {
					r.Error = err.Error()
				}
				results[i] <- r
			}()
		}
	}()
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	for _, r := range results {
		if err := e.Encode(<-r); err != nil {
			return err
		}
		<-slots
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

// compile returns the schema of a chart. Helm would compile it for every rendering.
func compile(raw []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	const name = "file:///values.schema.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

func render(c *chart.Chart, schema *jsonschema.Schema, values map[string]any, release chartutil.ReleaseOptions, caps *chartutil.Capabilities) (string, error) {
	top, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, release, caps, true)
	if err != nil {
		return "", err
	}
	merged, err := top.Table("Values")
	if err != nil {
		return "", err
	}
	// As in Helm, the validator has numbers as they are in the values' JSON.
	raw, err := json.Marshal(merged)
	if err != nil {
		return "", err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	if err := schema.Validate(document); err != nil {
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
