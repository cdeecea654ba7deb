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
		"clusters":         "config/crd/bases/postgresql.cnpg.io_clusters.yaml",
		"poolers":          "config/crd/bases/postgresql.cnpg.io_poolers.yaml",
		"scheduledbackups": "config/crd/bases/postgresql.cnpg.io_scheduledbackups.yaml",
	},
}

// gitOpsDefinitions lists the custom resources of the examples in docs/gitops.md.
// Separately, because Argo CD's module has 58 MB.
var gitOpsDefinitions = map[string]map[string]string{
	"github.com/argoproj/argo-cd/v3": {
		"applications": "manifests/crds/application-crd.yaml",
	},
}

// olmDefinitions lists the custom resources of the Operator Lifecycle Manager that its bundle uses.
var olmDefinitions = map[string]map[string]string{
	"github.com/operator-framework/api": {
		"clusterserviceversions": "crds/operators.coreos.com_clusterserviceversions.yaml",
	},
}

// fluxTypes are the packages of Flux's custom resources, pinned by
// hack/crds/flux.
var fluxTypes = []string{
	"github.com/fluxcd/helm-controller/api/v2", "github.com/fluxcd/kustomize-controller/api/v1", "github.com/fluxcd/source-controller/api/v1",
}

// Definitions returns the files that define third-party custom resources, by
// plural.
func Definitions(ctx context.Context) (map[string]string, error) {
	return locate(ctx, definitions)
}

// OLMDefinitions returns the files that define custom resources of the Operator
// Lifecycle Manager, by plural.
func OLMDefinitions(ctx context.Context) (map[string]string, error) {
	return locate(ctx, olmDefinitions)
}

// GitOpsDefinitions returns the files that define the custom resources of Argo CD
// and Flux. Those of Flux are generated in dir from their types.
func GitOpsDefinitions(ctx context.Context, dir string) (map[string]string, error) {
	files, err := locate(ctx, gitOpsDefinitions)
	if err != nil {
		return nil, err
	}
	root, err := RepoRoot()
	if err != nil {
		return nil, err
	}
	args := []string{"controller-gen", "crd", "output:crd:dir=" + dir}
	for _, pkg := range fluxTypes {
		args = append(args, "paths="+pkg)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool.sh"), args...)
	cmd.Dir = filepath.Join(root, "hack", "crds", "flux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("generate the definitions of Flux: %w\n%s", err, out)
	}
	generated, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the definitions of Flux: %w", err)
	}
	for _, file := range generated {
		files[filepath.Base(file)] = file
	}
	return files, nil
}

// locate returns the files of modules that hack/crds pins.
func locate(ctx context.Context, definitions map[string]map[string]string) (map[string]string, error) {
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
