package installation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// account is the operator's service account in the chart.
const account = "mnemo-operator"

// join makes the namespace with the operator's account and exactly the rights
// of config/rbac-namespaced.
func (i *Installation) join(tb testing.TB) {
	tb.Helper()
	config := testkit.KubeConfig(tb)
	config.QPS = -1
	scheme, err := controllers.NewScheme()
	if err != nil {
		tb.Fatal(err)
	}
	if i.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		tb.Fatal(err)
	}
	folder := filepath.Join(root(tb), "config")
	for done := false; !done; {
		_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
			Paths: []string{filepath.Join(folder, "crd", "bases")}, ErrorIfPathMissing: true,
		})
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) { // concurrent test
			tb.Fatal(err)
		}
		done = err == nil
	}
	i.Namespace = i.AddNamespace(tb)
	i.MustCreate(tb, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: account}})
	for _, rights := range []string{"operator", "tenants"} {
		out, err := exec.CommandContext(tb.Context(), testkit.Kubectl(tb), "kustomize", filepath.Join(folder, "rbac-namespaced", rights)).Output()
		if err != nil {
			tb.Fatalf("kubectl kustomize: %v", err)
		}
		for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
			var role rbacv1.Role // a ClusterRole has the same fields
			if err := docs.Decode(&role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				tb.Fatal(err)
			}
			i.grant(tb, rights, role)
		}
	}
}

// root returns the root of the repository.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("the test does not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// AddNamespace creates a namespace and returns its name. The namespace and its
// Tenants are deleted after the test.
func (i *Installation) AddNamespace(tb testing.TB) string {
	tb.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "installation-"}}
	i.MustCreate(tb, ns)
	tb.Cleanup(func() { i.leave(tb, ns) })
	return ns.Name
}

func (i *Installation) leave(tb testing.TB, ns *corev1.Namespace) {
	tb.Helper()
	ctx := context.Background() // that of the test has ended
	var list v1alpha1.TenantList
	if err := i.List(ctx, &list, client.InNamespace(ns.Name)); err != nil {
		tb.Error(err)
	}
	for n := range list.Items {
		if len(list.Items[n].Finalizers) > 0 {
			before := list.Items[n].DeepCopy()
			list.Items[n].Finalizers = nil
			_ = i.Patch(ctx, &list.Items[n], client.MergeFrom(before))
		}
	}
	if err := i.Delete(ctx, ns); err != nil {
		tb.Error(err)
	}
}

func (i *Installation) grant(tb testing.TB, rights string, role rbacv1.Role) {
	tb.Helper()
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: i.Namespace}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: i.Namespace + "-" + rights}
	meta := metav1.ObjectMeta{Name: ref.Name}
	if role.Kind == "Role" {
		meta.Namespace = i.Namespace
		i.MustCreate(tb, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules})
		i.MustCreate(tb, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
		return
	}
	if role.Kind != "ClusterRole" {
		return
	}
	cluster := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
	i.MustCreate(tb, cluster)
	i.MustCreate(tb, binding)
	tb.Cleanup(func() {
		_ = i.Delete(context.Background(), binding)
		_ = i.Delete(context.Background(), cluster)
	})
}

// kubeconfig writes a kubeconfig for the operator's account, with a new token.
func (i *Installation) kubeconfig(tb testing.TB) string {
	tb.Helper()
	token := &authenticationv1.TokenRequest{}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: account}}
	if err := i.SubResource("token").Create(tb.Context(), of, token); err != nil {
		tb.Fatalf("request a token: %v", err)
	}
	config, err := clientcmd.LoadFromFile(testkit.KubeConfigFile(tb))
	if err != nil {
		tb.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		tb.Fatal(err)
	}
	return path
}
