//go:build !nokubernetes

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// parseOperator parses the flags as the operator does.
func parseOperator(t *testing.T, args ...string) (command operatorCommand, err error) {
	t.Helper()
	parser, err := kong.New(&command, modelVars())
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "--url=https://mnemo.test", "--database-url=postgres://test", "--milvus-address=milvus:19530", "--embedder=local")
	_, err = parser.Parse(args)
	return command, err
}

func parseDefaultQuota(t *testing.T, args ...string) (tenant.Quota, error) {
	t.Helper()
	command, err := parseOperator(t, args...)
	if err != nil {
		return tenant.Quota{}, err
	}
	return command.DefaultQuota.quota()
}

func TestFlagsOfQuotasHaveTheDefaultsOfTheResources(t *testing.T) {
	command, err := parseOperator(t)
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := command.DefaultQuota.quota()
	if err != nil {
		t.Fatal(err)
	}
	maximum, err := command.MaxQuota.quota()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tenant.Quota{tenant.DefaultQuota(), tenant.MaximumQuota()}, []tenant.Quota{defaults, maximum}); diff != "" {
		t.Errorf("default and maximum quota (-resources +flags):\n%s", diff)
	}
}

func TestDefaultQuotaFromFlagsAndEnvironment(t *testing.T) {
	t.Setenv("MNEMO_DEFAULT_QUOTA_MEMORIES", "7")
	t.Setenv("MNEMO_DEFAULT_QUOTA_REQUESTS_PER_MINUTE", "8")
	got, err := parseDefaultQuota(t, "--default-quota-storage=1.5Gi", "--default-quota-users=0")
	if err != nil {
		t.Fatal(err)
	}
	want := tenant.DefaultQuota()
	want.Memories, want.RequestsPerMinute, want.Storage, want.Users = 7, 8, 3<<29, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("default quota (-want +got):\n%s", diff)
	}
}

func TestDefaultQuotaReportsEveryInvalidFlag(t *testing.T) {
	for _, storage := range []string{"much", "100m", "-1", "9Pi", ""} {
		_, err := parseDefaultQuota(t, "--default-quota-storage="+storage, "--default-quota-page-tokens=-1")
		for _, flag := range []string{"--default-quota-storage", "--default-quota-page-tokens"} {
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("storage %q: got error %v, want one that names %s", storage, err, flag)
			}
		}
	}
}

func TestDefaultQuotaMustNotExceedTheMaximum(t *testing.T) {
	maximum := tenant.DefaultQuota()
	if err := checkDefaults(tenant.DefaultQuota(), maximum); err != nil {
		t.Errorf("equal to the maximum: %v", err)
	}
	maximum.Storage, maximum.Users = 1, 1
	err := checkDefaults(tenant.DefaultQuota(), maximum)
	for _, want := range []string{"--default-quota-storage (10737418240) must not exceed --max-quota-storage (1)", "--default-quota-users (50)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// TestQuotasAreFieldsOfTheTenant: each quota has a field in spec.quota, its usage one in status.usage, and the
// descriptions of both name the default.
func TestQuotasAreFieldsOfTheTenant(t *testing.T) {
	crd := readYAML(t, "../../config/crd/bases/mnemo.dev_tenants.yaml")
	reference, err := os.ReadFile("../../docs/tenant-spec.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tenant.Resources {
		path := strings.Split(r.Name, ".")
		value := any(int64(7))
		schema := at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "quota")
		for _, field := range path {
			schema = at(schema, "properties", field)
		}
		for _, field := range slices.Backward(path) {
			value = map[string]any{field: value}
		}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var spec v1alpha1.TenantQuota
		if err := json.Unmarshal(data, &spec); err != nil {
			t.Fatal(err)
		}
		if limit := spec.Limits()[r.Name]; limit == nil || *limit != 7 {
			t.Errorf("%s: Limits does not return the value of the field", r.Name)
		}
		if r.Used != nil && !r.Bytes && new(v1alpha1.TenantUsage).Counts()[r.Name] == nil {
			t.Errorf("%s: Counts does not return the usage", r.Name)
		}
		description, _ := at(schema, "description").(string)
		if want := "Default: " + defaultText(r); !strings.Contains(strings.Join(strings.Fields(description), " "), want) {
			t.Errorf("%s: the description is %q, want one with %q", r.Name, description, want)
		}
		row := "| `quota." + r.Name + "` | " + defaultText(r)
		if r.Whole == nil && !strings.Contains(strings.ReplaceAll(string(reference), "| `10Gi`", "| 10Gi"), row) {
			t.Errorf("docs/tenant-spec.md has no row that begins with %q", row)
		}
	}
}

// defaultText returns the default of a quota as the documentation writes it.
func defaultText(r tenant.Resource) string {
	switch {
	case r.Default == tenant.NoLimit:
		return "no limit"
	case r.Bytes:
		return resource.NewQuantity(r.Default, resource.BinarySI).String()
	}
	return strconv.FormatInt(r.Default, 10)
}

func readYAML(t *testing.T, file string) (out any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at returns the value at a path of keys and indexes, or nil.
func at(v any, path ...any) any {
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}
