package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
	"github.com/mnemo-dev/mnemo/hack/image"
	"github.com/mnemo-dev/mnemo/hack/olm"
)

// olmNamespace is the namespace of an installation from the OLM bundle.
const olmNamespace = "mnemo-olm"

// bundle is the OLM bundle, installed as OLM would install it.
type bundle struct {
	files   map[string][]byte
	install struct {
		Deployments []struct {
			Name  string
			Label map[string]string
			Spec  appsv1.DeploymentSpec
		}
		Permissions, ClusterPermissions []struct {
			ServiceAccountName string
			Rules              []rbacv1.PolicyRule
		}
	}
}

// build builds the bundle and imports its image, which contains the model.
func (b *bundle) build(t *testing.T) {
	source := olm.Source{
		Root: cluster.root, Chart: filepath.Join(cluster.root, "charts", "mnemo"), Version: "0.0.1-rc.1",
		Image: "mnemo.local/mnemo", Reference: "bundle", Arches: []string{runtime.GOARCH},
	}
	var err error
	if b.files, err = source.Bundle(t.Context()); err != nil {
		t.Fatal(err)
	}
	var csv struct {
		Spec struct{ Install struct{ Spec any } }
	}
	csv.Spec.Install.Spec = &b.install
	if err := yaml.Unmarshal(b.files["manifests/mnemo.clusterserviceversion.yaml"], &csv); err != nil {
		t.Fatal(err)
	}
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	options := devenv.Options{Dir: cluster.dir, Cache: cache}
	if err := node.ImportImage(t.Context(), options, source.Image+":"+source.Reference, bundledImage(t, cache)); err != nil {
		t.Fatal(err)
	}
}

// bundledImage returns the image of the cluster's program with the default model, as a release has it.
func bundledImage(t *testing.T, cache *devenv.Cache) v1.Image {
	t.Helper()
	system, onnxruntime, err := devenv.ImageLibraries(t.Context(), cache, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Local().Mnemo(filepath.Join(cluster.dir, "images", "local"), image.Libraries{System: system, ONNXRuntime: onnxruntime})
	if err != nil {
		t.Fatal(err)
	}
	model, err := devenv.Model(t.Context(), cache, devenv.DefaultModel)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := image.ModelLayer(model, "/models/"+devenv.DefaultModel)
	if err != nil {
		t.Fatal(err)
	}
	if img, err = image.Local().Append(img, layer); err != nil {
		t.Fatal(err)
	}
	return img
}

// createSecrets creates the Secrets of docs/install.md, "Operator Lifecycle Manager", for an empty database.
func (b *bundle) createSecrets(t *testing.T) {
	uninstallRelease(t)
	execute(t, database(t), "create database bundle owner mnemo_owner")
	kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+olmNamespace+`","labels":{
		"pod-security.kubernetes.io/enforce":"restricted"}}}`, "create", "--filename", "-")
	settings := b.stores(t)
	for name, data := range map[string]map[string]string{
		"mnemo-owner": {"DATABASE_OWNER_URL": settings["DATABASE_OWNER_URL"]},
		"mnemo-files": {"ca.crt": settings["ca.crt"]},
		"mnemo-config": {
			"DATABASE_URL": settings["DATABASE_URL"], "MNEMO_URL": "http://mnemo." + olmNamespace + ".svc",
			"MILVUS_ADDRESS": settings["MILVUS_ADDRESS"], "MILVUS_CA": "/etc/mnemo/files/ca.crt",
			"MILVUS_USERNAME": settings["MILVUS_USERNAME"], "MILVUS_PASSWORD": settings["MILVUS_PASSWORD"],
		},
	} {
		b.create(t, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": data,
		})
	}
}

// stores returns the connections of the cluster's stores, which the Secrets in its namespace contain.
func (*bundle) stores(t *testing.T) map[string]string {
	t.Helper()
	server, err := url.Parse(kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}"))
	if err != nil {
		t.Fatal(err)
	}
	host := server.Hostname() // the stores are exposed at the same address
	settings := map[string]string{
		"MILVUS_ADDRESS": "https://" + host + ":19530",
		"ca.crt":         kubectl(t, "", "get", "secret", "stores-ca", "--namespace", namespace, "--output", "go-template={{index .data \"ca.crt\" | base64decode}}"),
	}
	for name, secret := range map[string]string{"DATABASE_URL": "mnemo-app", "DATABASE_OWNER_URL": "mnemo-owner"} {
		user, password := login(t, secret)
		settings[name] = fmt.Sprintf("postgres://%s:%s@%s:5432/bundle?sslmode=verify-full&sslrootcert=/etc/mnemo/files/ca.crt", user, password, host)
	}
	settings["MILVUS_USERNAME"], settings["MILVUS_PASSWORD"] = login(t, "mnemo-milvus")
	return settings
}

// apply creates the objects of the bundle, and those that OLM creates from its ClusterServiceVersion. Two operators start at once.
func (b *bundle) apply(t *testing.T) {
	for path, content := range b.files {
		if strings.HasPrefix(path, "manifests/") && !strings.Contains(path, "clusterserviceversion") {
			kubectl(t, string(content), "apply", "--server-side", "--force-conflicts", "--namespace", olmNamespace, "--filename", "-")
		}
	}
	for _, p := range b.install.Permissions {
		b.create(t, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": p.ServiceAccountName}})
		b.grant(t, "Role", p.ServiceAccountName, p.Rules)
	}
	for _, p := range b.install.ClusterPermissions {
		b.grant(t, "ClusterRole", p.ServiceAccountName, p.Rules)
	}
	for _, d := range b.install.Deployments {
		if d.Name == "mnemo-operator" {
			d.Spec.Replicas = new(int32(2))
		}
		b.create(t, appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: maps.Clone(d.Label)},
			Spec:       d.Spec,
		})
	}
	for _, d := range b.install.Deployments {
		kubectl(t, "", "rollout", "status", "--namespace", olmNamespace, "deployment/"+d.Name, "--timeout=5m")
	}
}

// grant creates a role and binds it to an account.
func (b *bundle) grant(t *testing.T, kind, account string, rules []rbacv1.PolicyRule) {
	t.Helper()
	const group = "rbac.authorization.k8s.io"
	name := olmNamespace + "-" + account
	b.create(t, map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": name}, "rules": rules})
	b.create(t, map[string]any{
		"apiVersion": group + "/v1", "kind": kind + "Binding", "metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": group, "kind": kind, "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": olmNamespace}},
	})
}

func (*bundle) create(t *testing.T, object any) {
	t.Helper()
	manifest, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, string(manifest), "create", "--namespace", olmNamespace, "--filename", "-")
}

// use creates a Tenant, and stores and searches a memory with the model in the image.
func (*bundle) use(t *testing.T) {
	d := demo{namespace: olmNamespace}
	d.createTenant(t)
	d.storeAndSearch(t)
}

// remove deletes the Tenant and the objects outside the namespace.
func (*bundle) remove(t *testing.T) {
	kubectl(t, "", "delete", "tenants", "--all", "--namespace", olmNamespace, "--timeout=60s")
	kubectl(t, "", "delete", "clusterrole,clusterrolebinding", olmNamespace+"-mnemo-operator")
	kubectl(t, "", "delete", "namespace", olmNamespace, "--timeout=2m")
}
