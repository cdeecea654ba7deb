package charts_test

import (
	"strings"
	"testing"
)

// TestTLSMayEndAtLoadBalancer: an AWS Application Load Balancer, for example, has the certificate itself. Links in the
// users' Secrets still have https.
func TestTLSMayEndAtLoadBalancer(t *testing.T) {
	t.Parallel()
	ingress := map[string]any{"enabled": true, "host": "memory.example.test"}
	base := with(readValues(t, "testdata/values/external.yaml"), ingress, "ingress")
	results := renderAll(t, "default", []map[string]any{
		with(base, "https://memory.example.test", "url"), with(base, "http://memory.example.test", "url"), base,
	})
	if results[0].Error != "" {
		t.Fatal(results[0].Error)
	}
	urls := 0
	for _, o := range parse(t, results[0].Manifests) {
		if o.kind() == "Ingress" && o.at("spec", "tls") != nil {
			t.Errorf("Ingress has TLS %v, want none", o.at("spec", "tls"))
		}
		for _, container := range list(o.at("spec", "template", "spec", "containers")) {
			for _, env := range list(container["env"]) {
				if env["name"] == "MNEMO_URL" {
					urls++
					if env["value"] != "https://memory.example.test" {
						t.Errorf("%s: MNEMO_URL is %v, want https", o.name(), env["value"])
					}
				}
			}
		}
	}
	if urls != 2 {
		t.Errorf("%d URLs, want those of the API server and the operator", urls)
	}
	for _, r := range results[1:] {
		for _, want := range []string{"ingress.tls.existingSecret is required", "url", "https://"} {
			if !strings.Contains(r.Error, want) {
				t.Errorf("without https: error %q, want it to contain %q", r.Error, want)
			}
		}
	}
}
