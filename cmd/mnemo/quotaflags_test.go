//go:build !nokubernetes

package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// parseDefaultQuota parses the flags as the operator does.
func parseDefaultQuota(t *testing.T, args ...string) (tenant.Quota, error) {
	t.Helper()
	var command operatorCommand
	parser, err := kong.New(&command, modelVars())
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "--url=https://mnemo.test", "--database-url=postgres://test", "--milvus-address=milvus:19530", "--embedder=local")
	if _, err := parser.Parse(args); err != nil {
		return tenant.Quota{}, err
	}
	return command.DefaultQuota.quota()
}

func TestDefaultQuotaIsThatOfTheControllers(t *testing.T) {
	got, err := parseDefaultQuota(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(controllers.DefaultQuota, got); diff != "" {
		t.Errorf("default quota (-controllers +flags):\n%s", diff)
	}
}

func TestDefaultQuotaFromFlagsAndEnvironment(t *testing.T) {
	t.Setenv("MNEMO_DEFAULT_QUOTA_MEMORIES", "7")
	t.Setenv("MNEMO_DEFAULT_QUOTA_REQUESTS_PER_MINUTE", "8")
	got, err := parseDefaultQuota(t, "--default-quota-storage=1.5Gi", "--default-quota-users=0")
	if err != nil {
		t.Fatal(err)
	}
	want := controllers.DefaultQuota
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
	maximum := controllers.DefaultQuota
	if err := checkDefaults(controllers.DefaultQuota, maximum); err != nil {
		t.Errorf("equal to the maximum: %v", err)
	}
	maximum.Storage, maximum.Users = 1, 1
	err := checkDefaults(controllers.DefaultQuota, maximum)
	for _, want := range []string{"--default-quota-storage (10737418240) must not exceed --max-quota-storage (1)", "--default-quota-users (50)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
