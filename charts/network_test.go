package charts_test

import "testing"

// TestEmptyPortListsAllowNothing: a NetworkPolicy rule without ports allows every port of every address.
func TestEmptyPortListsAllowNothing(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"networkPolicy.dnsPorts", "networkPolicy.kubeAPIPorts", "webhooks.ports", "cells.ports"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			for _, policy := range parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/networkpolicy.yaml",
				"--set", "webhooks.enabled=true,cells.enabled=true", "--set-json", value+"=[]")) {
				for _, rule := range list(policy.at("spec", "egress")) {
					if len(list(rule["ports"])) == 0 && len(list(rule["to"])) == 0 {
						t.Errorf("NetworkPolicy %s allows all egress: %v", policy.name(), rule)
					}
					if rule["ports"] == nil && hasEveryNamespace(rule) {
						t.Errorf("NetworkPolicy %s allows every port of the cluster: %v", policy.name(), rule)
					}
				}
			}
		})
	}
}

// hasEveryNamespace reports whether a rule allows the pods of all namespaces.
func hasEveryNamespace(rule map[string]any) bool {
	for _, to := range list(rule["to"]) {
		if selector, found := to["namespaceSelector"].(map[string]any); found && len(selector) == 0 {
			return true
		}
	}
	return false
}
