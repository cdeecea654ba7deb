package charts_test

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestSelectorsAndNetworksAreValidated: the chart refuses each value that the programs refuse at their start, and names it
// and the expected form.
func TestSelectorsAndNetworksAreValidated(t *testing.T) {
	t.Parallel()
	selectors := []string{
		"a", "!a", "a=b", "a==b", "a!=b", "a=", "a in (b,c)", "a notin (b, c)", "a in ()", "a>1", "a < 2", "x.test/a=b,c!=d", " a = b , c ",
		"", "=", "a=b=c", "a b", "a,,b", "a=b,", "in (a)", "a in b", "a in (b", "/a=b", "A.test/a=b", "a=-b", "a=b/c", "a>b", "!a=b",
		"a=" + strings.Repeat("b", 63), "a=" + strings.Repeat("b", 64), strings.Repeat("a", 64), "x..test/a",
	}
	networks := []string{
		"10.0.0.0/8", "0.0.0.0/0", "192.168.1.1/32", "::/0", "2001:db8::/32", "fd00:1:2:3:4:5:6:7/128", "1::8/64",
		"10.0.0.0", "10.0.0.0/33", "256.0.0.0/8", "10.0.0/8", "010.0.0.0/8", "10.0.0.0/08", "/8", "a/8", "::/129", "1:::2/64", "1::2::3/64",
		"1:2:3:4:5:6:7/64", "1:2:3:4:5:6:7:8:9/64", "12345::/64", "10.0.0.0/8,10.0.0.0/8", "fe80::1%eth0/64", "::/ 1",
	}
	base := readValues(t, "testdata/values/external.yaml")
	base["cells"] = map[string]any{"enabled": true}
	type test struct {
		path  string
		value string
		valid bool
	}
	var tests []test
	var values []map[string]any
	for _, path := range []string{"operator.watchLabelSelector", "uninstall.watchLabelSelector", "cells.selector"} {
		for _, s := range selectors {
			_, err := labels.Parse(s)
			tests = append(tests, test{path, s, err == nil})
			values = append(values, with(base, s, strings.Split(path, ".")...))
		}
	}
	for _, path := range []string{"api.trustedProxies", "webhooks.networks", "cells.cidrs"} {
		for _, n := range networks {
			_, err := netip.ParsePrefix(n)
			tests = append(tests, test{path, n, err == nil})
			values = append(values, with(base, []any{n}, strings.Split(path, ".")...))
		}
	}
	for i, r := range renderAll(t, "default", values) {
		tt := tests[i]
		switch {
		case tt.valid && r.Error != "":
			t.Errorf("%s=%q: %s, want it accepted", tt.path, tt.value, r.Error)
		case !tt.valid && (!strings.Contains(r.Error, tt.path+" must be") || !strings.Contains(r.Error, "such as")):
			t.Errorf("%s=%q: error %q, want one that names the value and the expected form", tt.path, tt.value, r.Error)
		}
	}
}

// TestMaximumQuotasMustNotBeLessThanDefaults: otherwise the operator exits at its start.
func TestMaximumQuotasMustNotBeLessThanDefaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		defaults, maximum map[string]any
		want              string
	}{
		"equal":               {map[string]any{"memories": 5}, map[string]any{"memories": 5}, ""},
		"zero":                {map[string]any{"users": 0}, map[string]any{"users": 0}, ""},
		"storage of any unit": {map[string]any{"storage": "1024Gi"}, map[string]any{"storage": "1Ti"}, ""},
		"memories":            {map[string]any{"memories": 6}, map[string]any{"memories": 5}, "operator.maxQuota.memories (5) must not be less than operator.defaultQuota.memories (6)"},
		"conversations":       {nil, map[string]any{"conversations": 499}, "operator.maxQuota.conversations (499) must"},
		"users":               {nil, map[string]any{"users": 49}, "operator.maxQuota.users (49) must"},
		"requestsPerMinute":   {nil, map[string]any{"requestsPerMinute": 1}, "operator.maxQuota.requestsPerMinute (1) must"},
		"pageTokens":          {nil, map[string]any{"pageTokens": 1}, "operator.maxQuota.pageTokens (1) must"},
		"storage":             {nil, map[string]any{"storage": "10239Mi"}, "operator.maxQuota.storage (10239Mi) must not be less than operator.defaultQuota.storage (10Gi)"},
		"storage in Pi":       {map[string]any{"storage": "2Pi"}, nil, "operator.maxQuota.storage (1Ti) must"},
		"number too high":     {map[string]any{"memories": 1e18}, map[string]any{"memories": 1e18}, "/operator/maxQuota/memories"},
		"storage too high":    {nil, map[string]any{"storage": "9Pi"}, "operator.maxQuota.storage must be at most 8Pi"},
		"storage overflows":   {nil, map[string]any{"storage": "99999999999999999999"}, "/operator/maxQuota/storage"},
	}
	var names []string
	var values []map[string]any
	for name, tt := range tests {
		v := readValues(t, "testdata/values/external.yaml")
		v = with(with(v, tt.defaults, "operator", "defaultQuota"), tt.maximum, "operator", "maxQuota")
		if tt.defaults == nil {
			v = with(v, map[string]any{}, "operator", "defaultQuota")
		}
		if tt.maximum == nil {
			v = with(v, map[string]any{}, "operator", "maxQuota")
		}
		names, values = append(names, name), append(values, v)
	}
	for i, r := range renderAll(t, "default", values) {
		want := tests[names[i]].want
		if want == "" && r.Error != "" || want != "" && !strings.Contains(r.Error, want) {
			t.Errorf("%s: error %q, want %q", names[i], r.Error, want)
		}
	}
}
