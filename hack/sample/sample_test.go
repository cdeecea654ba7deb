package sample

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const tenant = "apiVersion: mnemo.dev/v1alpha1\nkind: Tenant\nmetadata: {name: acme, namespace: default}\nspec: {users: [{name: a}, {name: b}]}\n"
	want := Tenant{Namespace: "default", Name: "acme", Users: []User{{Name: "a"}, {Name: "b"}}}
	tests := map[string]struct {
		file    string
		want    Tenant
		wantErr string
	}{
		"one object":    {file: tenant, want: want},
		"two objects":   {file: "kind: Namespace\n---\n" + tenant, want: want},
		"empty objects": {file: "---\n# nothing\n---\n" + tenant, want: want},
		"no Tenant":     {file: "kind: Namespace\n", wantErr: "contains no Tenant"},
		"one user":      {file: "kind: Tenant\nspec: {users: [{name: a}]}\n", wantErr: "needs two"},
		"invalid":       {file: "kind: [", wantErr: "read "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "tenant.yaml")
			if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			objects, err := readObjects(file)
			var got Tenant
			if err == nil {
				got, err = find(objects)
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want it to contain %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sample (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKustomizationsOnlyListResources: ApplyKustomization supports nothing else.
func TestKustomizationsOnlyListResources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("namePrefix: x-\nresources: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ApplyKustomization(t.Context(), nil, dir); err == nil || !strings.Contains(err.Error(), "may only list resources") {
		t.Errorf("ApplyKustomization = %v, want an error for an unsupported field", err)
	}
}
