package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestMain(m *testing.M) {
	controllers.SetLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// install installs the CRD and RBAC of the operator in the test cluster, once.
var install = sync.OnceValues(func() (client.WithWatch, error) {
	ctx := context.Background() // outlives the first test
	scheme, err := controllers.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(kubeConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	for done := false; !done; {
		_, err := envtest.InstallCRDs(kubeConfig, envtest.CRDInstallOptions{
			Paths: []string{"../config/crd/bases"}, ErrorIfPathMissing: true,
		})
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) { // another package installs it concurrently
			return nil, err
		}
		done = err == nil
	}
	for _, file := range []string{"service_account.yaml", "role.yaml", "role_binding.yaml"} {
		if err := apply(ctx, c, "../config/rbac/"+file); err != nil {
			return nil, fmt.Errorf("apply %s: %w", file, err)
		}
	}
	return c, nil
})

var (
	kubeConfig     *rest.Config
	kubeConfigOnce sync.Once
)

// cluster returns an administrator's client of the test cluster, uncached.
func cluster(t *testing.T) client.WithWatch {
	t.Helper()
	config := testkit.KubeConfig(t)
	kubeConfigOnce.Do(func() {
		kubeConfig = config
		kubeConfig.QPS = -1
	})
	c, err := install()
	if err != nil {
		t.Fatalf("install the operator's resources: %v", err)
	}
	return c
}

// apply creates or updates the objects of a file.
func apply(ctx context.Context, c client.Client, path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := docs.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		err := c.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			object.SetResourceVersion("")
			err = c.Update(ctx, object)
			if apierrors.IsInvalid(err) { // requires a resourceVersion and is unchanged
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
}
