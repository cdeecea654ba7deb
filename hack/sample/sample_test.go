package sample

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const tenant = `{"kind":"Tenant","metadata":{"name":"acme","namespace":"default"},"spec":{"users":[{"name":"a"},{"name":"b"}]}}`
	want := Tenant{Namespace: "default", Name: "acme", Users: []User{{Name: "a"}, {Name: "b"}}}
	tests := map[string]struct {
		applied string
		want    Tenant
		wantErr string
	}{
		"one object": {applied: tenant, want: want},
		"list":       {applied: `{"kind":"List","items":[{"kind":"Namespace"},` + tenant + `]}`, want: want},
		"no Tenant":  {applied: `{"kind":"List","items":[]}`, wantErr: "contains no Tenant"},
		"one user":   {applied: `{"kind":"Tenant","spec":{"users":[{"name":"a"}]}}`, wantErr: "needs two"},
		"invalid":    {applied: `error: no`, wantErr: "read output of kubectl"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read([]byte(tt.applied))
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
