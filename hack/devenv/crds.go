package devenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// definitions lists the third-party custom resources that the chart uses: the
// file of each by its plural, by module. hack/crds pins the modules.
var definitions = map[string]map[string]string{
	"sigs.k8s.io/gateway-api": {
		"httproutes": "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
	},
	"github.com/prometheus-operator/prometheus-operator": {
		"servicemonitors": "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"prometheusrules": "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cloudnative-pg/cloudnative-pg": {
		"clusters": "config/crd/bases/postgresql.cnpg.io_clusters.yaml",
	},
}

// Definitions returns the files that define third-party custom resources, by
// plural.
func Definitions(ctx context.Context) (map[string]string, error) {
	root, err := RepoRoot()
	if err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for module := range definitions {
		args = append(args, module)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, "hack", "crds")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("fetch the modules of hack/crds: %w\n%s", err, out)
	}
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var module struct{ Path, Dir string }
		if err := d.Decode(&module); err != nil {
			return nil, fmt.Errorf("locate the modules of hack/crds: %w", err)
		}
		for name, file := range definitions[module.Path] {
			files[name] = filepath.Join(module.Dir, file)
		}
	}
	return files, nil
}
