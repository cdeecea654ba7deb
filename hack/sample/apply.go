package sample

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// fieldOwner is the field manager of the applied objects.
const fieldOwner = client.FieldOwner("mnemo-devenv")

// Connect returns a client of a cluster.
func Connect(kubeconfig string) (client.Client, error) {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime prints a stack trace after 30 seconds
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("create scheme: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// ApplyKustomization applies the resources of a kustomization that only lists files, as
// those of config do. kubectl would do the same, but is built from source.
func ApplyKustomization(ctx context.Context, c client.Client, dir string) ([]unstructured.Unstructured, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read kustomization: %w", err)
	}
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(raw, &k); err != nil {
		return nil, fmt.Errorf("%s/kustomization.yaml may only list resources: %w", dir, err)
	}
	var objects []unstructured.Unstructured
	for _, name := range k.Resources {
		documents, err := readObjects(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for i := range documents {
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&documents[i]), fieldOwner, client.ForceOwnership); err != nil {
				return nil, fmt.Errorf("apply %s of %s: %w", documents[i].GetName(), name, err)
			}
		}
		objects = append(objects, documents...)
	}
	return objects, nil
}

// readObjects reads the documents of a YAML file.
func readObjects(file string) (objects []unstructured.Unstructured, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read resource: %w", err)
	}
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var o unstructured.Unstructured
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
