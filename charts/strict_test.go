package charts_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// strictCluster is a namespace whose admission imitates OpenShift, which assigns users and groups, and a quota on limits.
type strictCluster struct {
	t         *testing.T
	client    client.Client
	namespace string // with the policies
	plain     string // without them, for values that violate them
	seen      map[[sha256.Size]byte]bool
	slots     chan struct{}
	pending   sync.WaitGroup
}

func newStrictCluster(t *testing.T) *strictCluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", testkit.KubeConfigFile(t))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no limit
	log.SetLogger(logr.Discard())
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &strictCluster{
		t: t, client: c, namespace: newNamespace(t), plain: newNamespace(t),
		seen: map[[sha256.Size]byte]bool{}, slots: make(chan struct{}, 16),
	}
	for _, namespace := range []string{s.namespace, s.plain} {
		account := object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}}
		kubectl(t, manifest(t, []object{account}), "-n", namespace, "apply", "--server-side", "-f", "-")
	}
	s.addPolicies()
	return s
}

// policies are the rules for pods, by name.
var policies = map[string]string{
	"ranges": `[object.spec].map(s, has(s.securityContext) ? s.securityContext : {}).all(c,
		!has(c.runAsUser) && !has(c.runAsGroup) && !has(c.fsGroup))`,
	"limits": `(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).all(c,
		has(c.resources) && has(c.resources.limits) && "cpu" in c.resources.limits && "memory" in c.resources.limits)`,
}

// violations are pods that violate one policy each.
var violations = map[string]string{
	"ranges": `{"securityContext":{"runAsUser":5,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a","image":"a",
		"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}`,
	"limits": `{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a","image":"a",
		"resources":{"limits":{"cpu":"1"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}`,
}

func (s *strictCluster) addPolicies() {
	s.t.Helper()
	for policy, expression := range policies {
		name := s.namespace + "-" + policy
		objects := []object{{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
				}}},
				"validations": []any{map[string]any{"expression": expression, "message": "policy " + policy}},
			},
		}, {
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"policyName": name, "validationActions": []any{"Deny"},
				"matchResources": map[string]any{"namespaceSelector": map[string]any{
					"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace},
				}},
			},
		}}
		kubectl(s.t, manifest(s.t, objects), "create", "-f", "-")
		s.t.Cleanup(func() {
			for _, o := range objects {
				u := &unstructured.Unstructured{Object: o}
				if err := s.client.Delete(context.Background(), u); err != nil {
					s.t.Errorf("delete policy: %v", err)
				}
			}
		})
		// It is enforced, and can reject a pod.
		r := &testRelease{t: s.t, namespace: s.namespace}
		r.eventually("enforce policy "+policy, func() bool {
			pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"` + s.namespace + `"},"spec":` + violations[policy] + `}`
			out, err := tryKubectl(s.t, pod, "create", "--dry-run=server", "-f", "-")
			return err != nil && strings.Contains(out, "policy "+policy)
		})
	}
}

// check sends the objects of a rendering, and the pods of its workloads, unless an earlier rendering had the same ones.
func (s *strictCluster) check(v variant, manifests string) {
	objects := parse(s.t, manifests)
	for _, o := range objects {
		if kindOf(o) != unchecked && o.kind() != "Pod" { // see below
			s.send(v, o)
		}
	}
	namespace := s.namespace
	withoutLimits := !strings.Contains(v.path, ".") && v.kind != "base" // a whole component may lack its resources
	if withoutLimits || strings.Contains(strings.ToLower(v.path), "resources") || strings.HasPrefix(v.path, "podSecurity") {
		namespace = s.plain
	}
	for id, template := range podSpecs(objects) {
		raw, err := json.Marshal(template["spec"])
		if err != nil {
			s.t.Fatal(err)
		}
		var spec map[string]any
		if err := json.Unmarshal(raw, &spec); err != nil {
			s.t.Fatal(err)
		}
		delete(spec, "serviceAccountName") // it may not exist
		name := strings.ToLower(strings.ReplaceAll(id, "/", "-"))
		if len(name) > 63 {
			name = name[:63]
		}
		s.send(v, object{
			"apiVersion": "v1", "kind": "Pod", "spec": spec,
			"metadata": map[string]any{"name": name, "namespace": namespace, "labels": template.at("metadata", "labels")},
		})
	}
}

// send lets the API server validate an object, without storing it.
func (s *strictCluster) send(v variant, o object) {
	raw, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	hash := sha256.Sum256(raw)
	if s.seen[hash] {
		return
	}
	s.seen[hash] = true
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		s.t.Fatal(err)
	}
	if u.GetNamespace() == "" {
		if mapped, err := s.client.IsObjectNamespaced(u); err != nil || mapped {
			u.SetNamespace(s.namespace)
		}
	}
	s.slots <- struct{}{}
	s.pending.Go(func() {
		defer func() { <-s.slots }()
		err := s.client.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"))
		missing := apierrors.IsNotFound(err) && strings.HasPrefix(err.Error(), "namespaces ") // of operator.watchNamespaces
		if err != nil && !missing {
			s.t.Errorf("%s %s: the API server refuses %s %s: %v", v.path, v.kind, o.kind(), o.name(), err)
		}
	})
}

func (s *strictCluster) wait() { s.pending.Wait() }
