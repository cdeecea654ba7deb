package main

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestIsEstablished(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		`null`: false, `{}`: false, `{"conditions": null}`: false, `{"conditions": []}`: false,
		`{"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "False"}]}`: false,
		`{"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]}`:  true,
	} {
		crd := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "status": `+status+`}`), crd); err != nil {
			t.Fatal(err)
		}
		if got := isEstablished(crd); got != want {
			t.Errorf("status %s: %t, want %t", status, got, want)
		}
	}
}
