package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestStoresHaveIPv6Addresses: PostgreSQL's address may have brackets, Milvus' must.
func TestStoresHaveIPv6Addresses(t *testing.T) {
	t.Parallel()
	base := readValues(t, "testdata/values/external.yaml")
	base = with(base, "[2001:db8::3]:19530", "milvus", "address")
	base = with(base, "http://[2001:db8::4]:8080/v1", "embeddings", "external", "url")
	base = with(base, true, "erasureLedger", "enabled")
	var values []map[string]any
	for _, host := range []string{"2001:db8::1", "[2001:db8::1]"} {
		values = append(values, with(with(base, host, "postgres", "host"), strings.Replace(host, "::1", "::2", 1), "postgres", "pooler", "host"))
	}
	for i, r := range renderAll(t, "default", values) {
		if r.Error != "" {
			t.Fatal(r.Error)
		}
		objects, found := parse(t, r.Manifests), map[string][]string{}
		for _, template := range podSpecs(objects) {
			containers := append(list(template.at("spec", "containers")), list(template.at("spec", "initContainers"))...)
			for _, container := range containers {
				for _, env := range list(container["env"]) {
					name, _ := env["name"].(string)
					value, _ := env["value"].(string)
					if name == "MILVUS_ADDRESS" {
						found[name] = append(found[name], strings.TrimPrefix(value, "https://"))
					} else if strings.HasPrefix(value, "postgres://") {
						config, err := pgconn.ParseConfig(strings.Split(value, "&sslrootcert")[0])
						if err != nil {
							t.Errorf("values %d: %s: %v", i, value, err)
							continue
						}
						found[name] = append(found[name], config.Host)
					}
				}
			}
		}
		for name, hosts := range found {
			slices.Sort(hosts)
			found[name] = slices.Compact(hosts)
		}
		want := map[string][]string{
			"MILVUS_ADDRESS": {"[2001:db8::3]:19530"}, "DATABASE_URL": {"2001:db8::1", "2001:db8::2"},
			"DATABASE_DIRECT_URL": {"2001:db8::1"}, "DATABASE_OWNER_URL": {"2001:db8::1"},
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("values %d: -want +got\n%s", i, diff)
		}
		for _, o := range objects {
			if o.kind() != "NetworkPolicy" {
				continue
			}
			for _, rule := range list(o.at("spec", "egress")) {
				for _, to := range list(rule["to"]) {
					if to["namespaceSelector"] != nil {
						t.Errorf("values %d: policy %s allows a namespace for an address: %v", i, o.name(), to)
					}
				}
			}
		}
	}
}

func TestInvalidAddressesAreRejected(t *testing.T) {
	t.Parallel()
	base := readValues(t, "testdata/values/external.yaml")
	var paths, tests []string
	var values []map[string]any
	for path, invalid := range map[string][]string{
		"postgres.host":        {"db:5432", "postgres://db", "db/x", "a b", "db?x", "a@b", "[::1", "::1]"},
		"postgres.pooler.host": {"db:5432", "db/x", "a b"},
		"milvus.address":       {"db", "db:", "db:x", "https://db:1", "2001:db8::1:19530", "a b:1", "[db]:1", ":1"},
	} {
		for _, address := range invalid {
			paths, tests = append(paths, path), append(tests, path+"="+address)
			values = append(values, with(base, address, strings.Split(path, ".")...))
		}
	}
	for i, r := range renderAll(t, "default", values) {
		if want := "'/" + strings.ReplaceAll(paths[i], ".", "/") + "'"; !strings.Contains(r.Error, want) {
			t.Errorf("%s: error %q, want it to contain %s", tests[i], r.Error, want)
		}
	}
}

// TestServicesHaveIPFamilies covers dual-stack clusters, and load balancers with a list of allowed networks.
func TestServicesHaveIPFamilies(t *testing.T) {
	t.Parallel()
	service := map[string]any{
		"type": "LoadBalancer", "ipFamilyPolicy": "RequireDualStack", "ipFamilies": []any{"IPv6", "IPv4"},
		"loadBalancerSourceRanges": []any{"192.0.2.0/24", "2001:db8::/32"},
	}
	demo := map[string]any{"demo": true, "service": service, "embeddings": map[string]any{"mode": "local"}}
	r := renderAll(t, "default", []map[string]any{demo})[0]
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	for _, o := range parse(t, r.Manifests) {
		if o.kind() != "Service" {
			continue
		}
		got := []any{o.at("spec", "ipFamilyPolicy"), o.at("spec", "ipFamilies"), o.at("spec", "loadBalancerSourceRanges")}
		want := []any{service["ipFamilyPolicy"], service["ipFamilies"], nil}
		if o.name() == "mnemo" {
			want[2] = service["loadBalancerSourceRanges"]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Service %s: -want +got\n%s", o.name(), diff)
		}
	}
}

func TestInvalidServicesAreRejected(t *testing.T) {
	t.Parallel()
	tests := map[string]map[string]any{
		"service.loadBalancerSourceRanges requires service.type LoadBalancer": {"loadBalancerSourceRanges": []any{"192.0.2.0/24"}},
		"service.loadBalancerSourceRanges must be networks in CIDR notation":  {"type": "LoadBalancer", "loadBalancerSourceRanges": []any{"192.0.2.0"}},
		"service.ipFamilyPolicy must be PreferDualStack or RequireDualStack":  {"ipFamilies": []any{"IPv4", "IPv6"}},
		"/service/ipFamilies":     {"ipFamilies": []any{"IPv4", "IPv4"}},
		"/service/ipFamilies/0":   {"ipFamilies": []any{"ipv4"}},
		"/service/ipFamilyPolicy": {"ipFamilyPolicy": "DualStack"},
	}
	var wants []string
	var values []map[string]any
	for want, service := range tests {
		wants = append(wants, want)
		values = append(values, with(readValues(t, "testdata/values/external.yaml"), service, "service"))
	}
	for i, r := range renderAll(t, "default", values) {
		if !strings.Contains(r.Error, wants[i]) {
			t.Errorf("%v: error %q, want %q", tests[wants[i]], r.Error, wants[i])
		}
	}
}
