package charts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// milvusEnv matches an environment variable of the connection to Milvus.
var milvusEnv = regexp.MustCompile(`MILVUS_[A-Z]+`)

// TestWithoutMilvus: no object, Secret, volume, port or variable of Milvus remains.
func TestWithoutMilvus(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"PostgreSQL only":          {"-f", "testdata/values/unindexed.yaml"},
		"Secrets that are left":    {"-f", "testdata/values/unindexed.yaml", "--set", "milvus.auth.existingSecret=m,milvus.tls.existingSecret=ca,erasureLedger.enabled=true"},
		"the demo":                 {"-f", "testdata/values/demo.yaml", "--set", "index.mode=none"},
		"the demo with an address": {"-f", "testdata/values/demo.yaml", "--set", "index.mode=none,milvus.address=m:1"},
	} {
		got := render(t, append([]string{"--set", "crds.install=false"}, args...)...)
		for line := range strings.Lines(got) {
			if strings.Contains(strings.ToLower(line), "milvus") || strings.Contains(line, "19530") {
				t.Errorf("%s: rendered %q", reason, line)
			}
		}
		if !strings.Contains(got, "{name: MNEMO_INDEX, value: none}") {
			t.Errorf("%s: the pods use an index", reason)
		}
	}
}

// TestLeavingMilvus: the pods stay connected, so that the partitions are dropped.
func TestLeavingMilvus(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"an external Milvus": {"-f", "testdata/values/external.yaml"},
		"milvus-operator":    {"-f", "testdata/values/managed.yaml"},
	} {
		before := render(t, append([]string{"--set", "crds.install=false"}, args...)...)
		after := render(t, append([]string{"--set", "crds.install=false,index.mode=none"}, args...)...)
		if got, want := milvusEnv.FindAllString(after, -1), milvusEnv.FindAllString(before, -1); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: variables %v, want %v", reason, got, want)
		}
		if !strings.Contains(after, "{name: MNEMO_INDEX, value: none}") {
			t.Errorf("%s: the pods use the index", reason)
		}
	}
}
