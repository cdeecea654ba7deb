package olm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// rendered are the objects of the chart from which the bundle is made.
type rendered struct {
	definition  map[string]any // of the Tenant resource
	deployments []appsv1.Deployment
	migration   batchv1.Job
	clusterRole rbacv1.ClusterRole
	role        rbacv1.Role
	others      []unstructured.Unstructured // those that a bundle contains as they are
}

// helmLabels are the labels that are true only of a release of Helm.
var helmLabels = regexp.MustCompile(`(?m)^ +(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n`)

// render renders the chart.
func (s Source) render(ctx context.Context) (*rendered, error) {
	kubeVersion, err := s.minKubeVersion()
	if err != nil {
		return nil, err
	}
	reference := "tag"
	if strings.HasPrefix(s.Reference, "sha256:") {
		reference = "digest"
	}
	manifests, err := devenv.Tool(ctx, s.Root, "helm", "template", "mnemo", s.Chart, "--kube-version", kubeVersion,
		"--values", filepath.Join(s.Root, "config/olm/values.yaml"), "--set", "image.repository="+s.Image+",image."+reference+"="+s.Reference)
	if err != nil {
		return nil, err
	}
	o := &rendered{}
	if err := s.read("config/crd/bases/mnemo.dev_tenants.yaml", &o.definition); err != nil {
		return nil, err
	}
	documents := yaml.NewYAMLToJSONDecoder(strings.NewReader(helmLabels.ReplaceAllString(manifests, "")))
	for {
		var u unstructured.Unstructured
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			return o, nil
		} else if err != nil {
			return nil, fmt.Errorf("read rendered chart: %w", err)
		}
		if err := o.add(u); err != nil {
			return nil, err
		}
	}
}

// add adds an object, unless the bundle cannot contain it. Network policies and Helm hooks have no counterpart there,
// and OLM rejects kinds such as ValidatingAdmissionPolicy. OLM creates the ServiceAccounts.
func (o *rendered) add(u unstructured.Unstructured) error {
	if _, hook := u.GetAnnotations()["helm.sh/hook"]; hook || u.Object == nil {
		return nil
	}
	var into any
	switch u.GetKind() {
	case "Deployment":
		o.deployments = append(o.deployments, appsv1.Deployment{})
		into = &o.deployments[len(o.deployments)-1]
	case "Job":
		into = &o.migration
	case "ClusterRole":
		into = &o.clusterRole
	case "Role":
		into = &o.role
	case "Service", "PodDisruptionBudget":
		o.others = append(o.others, u)
		return nil
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read %s %s of the chart: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// icon returns the icon of the dashboard.
func (s Source) icon() ([]byte, error) {
	icon, err := os.ReadFile(filepath.Join(s.Root, "apiserver/dashboard/assets/icon.svg"))
	if err != nil {
		return nil, fmt.Errorf("read icon: %w", err)
	}
	return icon, nil
}
