package charts_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		if out, err := helm(t, append([]string{"lint", "--strict", "--kube-version", "1.37.0", chart}, values...)...); err != nil {
			t.Errorf("helm lint with %s: %v%s", name, err, out)
		}
	}
}

// generatedPasswords matches the demo's passwords, which change with each rendering.
var generatedPasswords = regexp.MustCompile(`(?m)^  password: [A-Za-z0-9+/=]{40,}$`)

// demoChecksum matches the hash of these passwords.
var demoChecksum = regexp.MustCompile(`checksum/secrets: "?[0-9a-f]{16}"?`)

// generatedRules matches the operator's rules; TestOperatorRules compares them with
// their source.
var generatedRules = regexp.MustCompile(`(?s)rules:\n  - apiGroups:\n.*?\n---`)

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden := "testdata/golden/" + name + ".yaml"
			// TestCRDMatchesSource compares the CRD with its source.
			got := render(t, append([]string{"-n", "mnemo-system", "--set", "crds.install=false"}, values...)...)
			got = generatedPasswords.ReplaceAllString(got, "  password: GENERATED")
			got = demoChecksum.ReplaceAllString(got, `checksum/secrets: "GENERATED"`)
			got = generatedRules.ReplaceAllString(got, "rules: GENERATED\n---")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("rendered objects of %s changed (if intended: go test ./charts -run Golden -update): -want +got\n%s", name, diff)
			}
		})
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	t.Parallel()
	const external = "testdata/values/external.yaml"
	tests := map[string]struct {
		args []string
		want string
	}{
		"no values":                      {args: nil, want: "is required"},
		"no PostgreSQL":                  {args: []string{"-f", external, "--set", "postgres.host="}, want: "postgres.host is required"},
		"no owner Secret":                {args: []string{"-f", external, "--set", "postgres.owner.existingSecret="}, want: "postgres.owner.existingSecret is required"},
		"no application Secret":          {args: []string{"-f", external, "--set", "postgres.app.existingSecret="}, want: "postgres.app.existingSecret is required"},
		"no Milvus":                      {args: []string{"-f", external, "--set", "milvus.address="}, want: "milvus.address is required"},
		"no Milvus Secret":               {args: []string{"-f", external, "--set", "milvus.mode=operator"}, want: "milvus.auth.existingSecret is required"},
		"no embeddings endpoint":         {args: []string{"-f", external, "--set", "embeddings.external.url="}, want: "embeddings.external.url is required"},
		"no dimensions":                  {args: []string{"-f", external, "--set", "embeddings.external.dimensions=0"}, want: "embeddings.external.dimensions is required"},
		"no claim":                       {args: []string{"-f", external, "--set", "embeddings.mode=local,embeddings.local.source=claim"}, want: "embeddings.local.existingClaim is required"},
		"chat without a model":           {args: []string{"-f", external, "--set", "chat.url=https://x"}, want: "chat.model is required"},
		"reranker without a model":       {args: []string{"-f", external, "--set", "rerank.url=https://x,rerank.dialect=jina"}, want: "rerank.model is required"},
		"unknown reranking dialect":      {args: []string{"-f", external, "--set", "rerank.dialect=own"}, want: "/rerank/dialect"},
		"ingress without a host":         {args: []string{"-f", external, "--set", "ingress.enabled=true"}, want: "ingress.host is required"},
		"ingress without TLS":            {args: []string{"-f", external, "--set", "ingress.enabled=true,ingress.host=x.test"}, want: "ingress.tls.existingSecret is required"},
		"route without a gateway":        {args: []string{"-f", external, "--set", "gateway.enabled=true"}, want: "gateway.parentRefs is required"},
		"shard without a selector":       {args: []string{"-f", external, "--set", "operator.shard=b"}, want: "operator.watchLabelSelector is required"},
		"more standbys than there are":   {args: []string{"-f", external, "--set", "postgres.mode=cnpg,postgres.cnpg.synchronous.number=3"}, want: "postgres.cnpg.synchronous.number must be less than postgres.cnpg.instances"},
		"autoscaling to fewer replicas":  {args: []string{"-f", external, "--set", "api.autoscaling.enabled=true,api.autoscaling.minReplicas=11"}, want: "api.autoscaling.maxReplicas must not be less than minReplicas"},
		"backup without a CA":            {args: []string{"-f", external, "--set", "backup.enabled=true"}, want: "postgres.ca is required with backup.enabled"},
		"backup with sslMode verify-ca":  {args: []string{"-f", external, "--set", "backup.enabled=true,postgres.sslMode=verify-ca"}, want: "postgres.ca is required with backup.enabled"},
		"disabled on its own":            {args: []string{"-f", external, "--set", "enabled=false"}, want: "enabled must be true"},
		"no service account":             {args: []string{"-f", external, "--set", "operator.serviceAccount.create=false"}, want: "operator.serviceAccount.name is required"},
		"unknown key":                    {args: []string{"-f", external, "--set", "api.replcas=3"}, want: "replcas"},
		"wrong type":                     {args: []string{"-f", external, "--set-string", "api.replicas=three"}, want: "/api/replicas"},
		"unknown mode":                   {args: []string{"-f", external, "--set", "postgres.mode=builtin"}, want: "/postgres/mode"},
		"invalid digest":                 {args: []string{"-f", external, "--set", "image.digest=latest"}, want: "/image/digest"},
		"provider without client":        {args: []string{"-f", external, "--set", "oidc.providers[0].name=A,oidc.providers[0].issuer=https://a.test"}, want: "clientId"},
		"provider with an inline secret": {args: []string{"-f", external, "--set", "oidc.providers[0].clientSecret=s3cret"}, want: "clientSecret"},
		"Milvus URL instead of address":  {args: []string{"-f", external, "--set", "milvus.address=https://m:1"}, want: "/milvus/address"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := helm(t, append([]string{"template", "mnemo", chart, "--kube-version", "1.37.0"}, tt.args...)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("helm template: %v, want an error that contains %q", err, tt.want)
			}
		})
	}
}

// TestNetworkPolicyAllowsConfiguredURLs covers Services in the cluster as well,
// where the policy applies to the pods' port and the URL has the Service's.
func TestNetworkPolicyAllowsConfiguredURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"https://models.example.com/v1":                {"443"},
		"http://models.example.com:8080/v1":            {"8080"},
		"http://10.1.2.3:8080":                         {"8080"},
		"http://models/v1":                             {"80", "in mnemo-system"},
		"http://models.ai:8080/v1":                     {"8080", "in ai"},
		"https://models.ai.svc/v1":                     {"443", "in ai"},
		"http://models.ai.svc.cluster.local:8080/v1":   {"8080", "in ai"},
		"https://models.example.com:8443/services/svc": {"8443"},
	} {
		for _, set := range []string{
			"embeddings.external.url=" + url, "chat.model=big,chat.url=" + url, "rerank.url=" + url, "tracing.endpoint=" + url,
			"oidc.providers[0].name=A,oidc.providers[0].clientId=a,oidc.providers[0].issuer=" + url,
		} {
			args := []string{"-n", "mnemo-system", "-f", "testdata/values/external.yaml", "-s", "templates/networkpolicy.yaml"}
			if !strings.HasPrefix(set, "embeddings") {
				args = append(args, "--set", "embeddings.mode=local")
			}
			policy := parse(t, render(t, append(args, "--set", set)...))[0]
			rules, _ := policy.at("spec", "egress").([]any)
			var got []string
			for _, r := range rules[3:] { // after the rules for DNS and both stores
				rule, _ := r.(map[string]any)
				for _, p := range list(rule["ports"]) {
					got = append(got, fmt.Sprint(object(p).at("port")))
				}
				for _, to := range list(rule["to"]) {
					got = append(got, fmt.Sprint("in ", object(to).at("namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", set, diff)
			}
		}
	}
}

// TestCRDMatchesSource also checks that Helm keeps the CRD when it uninstalls the
// chart.
func TestCRDMatchesSource(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../config/crd/bases/mnemo.dev_tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, string(raw))[0]
	objects := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/crd.yaml"))
	if len(objects) != 1 {
		t.Fatalf("%d objects, want only the CRD", len(objects))
	}
	withCells := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/crd.yaml", "--set", "cells.enabled=true"))
	if len(withCells) != 2 || withCells[1].name() != "cells.mnemo.dev" {
		t.Errorf("%d CRDs with cells, want those of Tenants and Cells", len(withCells))
	}
	got := objects[0]
	if diff := cmp.Diff(want["spec"], got["spec"]); diff != "" {
		t.Errorf("the CRD differs from config/crd: -want +got\n%s", diff)
	}
	if got.name() != want.name() || got.at("metadata", "annotations", "helm.sh/resource-policy") != "keep" {
		t.Errorf("metadata %v, want the name %s and the policy keep", got["metadata"], want.name())
	}
}

// TestOperatorRules checks that the operator's rules are those generated from its
// code, and that watchNamespaces limits those for Secrets. Those for Tenants outlive the RoleBinding of a
// deleted namespace.
func TestOperatorRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := func(objects []object) map[string]any {
		found := map[string]any{}
		for _, o := range objects {
			if o["rules"] != nil {
				namespace, _ := o.at("metadata", "namespace").(string)
				found[o.kind()+"/"+namespace] = o["rules"]
			}
		}
		return found
	}
	rendered := func(args ...string) map[string][]string {
		return rightsOf(rules(parse(t, render(t, append(args, "-n", "mnemo-system", "-f", "testdata/values/external.yaml", "-s", "templates/rbac.yaml")...))))
	}
	all := rightsOf(rules(parse(t, string(raw))))
	if diff := cmp.Diff(all, rendered("--set", "cells.enabled=true")); diff != "" {
		t.Errorf("the chart's rights differ from config/rbac/role.yaml: -want +got\n%s", diff)
	}
	// Rights to Cells, and to Secrets in the release's namespace, are granted with cells only.
	ofCells := func(right string) bool { return strings.Contains(right, "/cells") }
	withoutCells := map[string][]string{
		"ClusterRole/":      slices.DeleteFunc(slices.Clone(all["ClusterRole/"]), ofCells),
		"Role/mnemo-system": slices.DeleteFunc(slices.Clone(all["Role/mnemo-system"]), func(right string) bool { return strings.HasPrefix(right, "/secrets") }),
	}
	if diff := cmp.Diff(withoutCells, rendered()); diff != "" {
		t.Errorf("without cells: -want +got\n%s", diff)
	}
	narrow := func(cells bool) map[string][]string {
		var cluster, watched []string
		for _, right := range all["ClusterRole/"] {
			switch {
			case strings.Contains(right, "kube-system"), strings.HasPrefix(right, "mnemo.dev/tenants ") || strings.HasPrefix(right, "mnemo.dev/tenants/status "), cells && ofCells(right):
				cluster = append(cluster, right)
			case !ofCells(right):
				watched = append(watched, right)
			}
		}
		own := withoutCells["Role/mnemo-system"]
		if cells {
			own = all["Role/mnemo-system"]
		}
		return map[string][]string{"ClusterRole/": cluster, "Role/mnemo-system": own, "Role/a": watched, "Role/b": watched}
	}
	if diff := cmp.Diff(narrow(false), rendered("--set", "operator.watchNamespaces={a,b}")); diff != "" {
		t.Errorf("with watchNamespaces: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(narrow(true), rendered("--set", "operator.watchNamespaces={a,b},cells.enabled=true")); diff != "" {
		t.Errorf("with watchNamespaces and cells: -want +got\n%s", diff)
	}
	// The pre-uninstall Job has the same limits.
	release := []any{map[string]any{"apiGroups": []any{"mnemo.dev"}, "resources": []any{"tenants"}, "verbs": []any{"list", "patch"}}}
	got := rules(parse(t, render(t, "-n", "mnemo-system", "-f", "testdata/values/external.yaml", "-s", "templates/uninstall.yaml",
		"--set", "operator.watchNamespaces={a,b}")))
	delete(got, "Role/") // for the operator's Deployment
	if diff := cmp.Diff(map[string]any{"Role/a": release, "Role/b": release}, got); diff != "" {
		t.Errorf("pre-uninstall with watchNamespaces: -want +got\n%s", diff)
	}
	// Of the Secrets of its namespace, it deletes only the one with the connections of cells.
	got = rules(parse(t, render(t, "-n", "mnemo-system", "-f", "testdata/values/external.yaml", "-s", "templates/uninstall.yaml",
		"--set", "cells.enabled=true")))
	deleted := slices.DeleteFunc(rightsOf(got)["Role/"], func(right string) bool { return !strings.Contains(right, "secrets") })
	if diff := cmp.Diff([]string{"/secrets delete [mnemo-cells]"}, deleted); diff != "" {
		t.Errorf("pre-uninstall with cells, rights on Secrets: -want +got\n%s", diff)
	}
}

// TestNoDelayBeforeShutdown: Kubernetes 1.30 to 1.32 reject a sleep of 0 seconds.
func TestNoDelayBeforeShutdown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seconds string
		want    any
	}{{"10", 10}, {"0", nil}} {
		deployment := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/api-deployment.yaml", "--set", "api.drainSeconds="+tt.seconds))[0]
		api := object(list(deployment.at("spec", "template", "spec", "containers"))[0])
		if got := api.at("lifecycle", "preStop", "sleep", "seconds"); got != tt.want || (tt.want == nil && api["lifecycle"] != nil) {
			t.Errorf("api.drainSeconds %s: lifecycle %v, want a sleep of %v seconds", tt.seconds, api["lifecycle"], tt.want)
		}
	}
}

// TestUninstallSelectsTenants: the selector of a shard does not apply, because the other shards are uninstalled, too.
func TestUninstallSelectsTenants(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"", "database=a"} {
		objects := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/uninstall.yaml",
			"--set", "operator.watchLabelSelector=mnemo.dev/shard=a,uninstall.watchLabelSelector="+want))
		var got any = ""
		for _, o := range objects {
			if o.kind() == "Job" {
				for _, e := range list(list(o.at("spec", "template", "spec", "containers"))[0]["env"]) {
					if e["name"] == "MNEMO_WATCH_LABEL_SELECTOR" {
						got = e["value"]
					}
				}
			}
		}
		if got != want {
			t.Errorf("the Job selects Tenants with %q, want %q", got, want)
		}
	}
}

// TestUninstallStopsOperator checks that the pre-uninstall Job stops the operator's Deployment, and may do so, even if
// the release is a shard. It treats a missing Deployment as stopped.
func TestUninstallStopsOperator(t *testing.T) {
	t.Parallel()
	for _, shard := range []string{"", "a"} {
		objects := parse(t, render(t, "-n", "mnemo-system", "-f", "testdata/values/external.yaml", "-s", "templates/operator-deployment.yaml",
			"-s", "templates/uninstall.yaml", "--set", "operator.shard="+shard+",operator.watchLabelSelector=mnemo.dev/shard=a"))
		var deployment string
		var stopped, allowed any
		for _, o := range objects {
			switch o.kind() {
			case "Deployment":
				deployment = o.name()
			case "Role":
				allowed = list(o["rules"])[0]["resourceNames"]
			case "Job":
				for _, e := range list(list(o.at("spec", "template", "spec", "containers"))[0]["env"]) {
					if e["name"] == "MNEMO_OPERATOR_DEPLOYMENT" {
						stopped = e["value"]
					}
				}
			}
		}
		if stopped != "mnemo-system/"+deployment || fmt.Sprint(allowed) != fmt.Sprint([]string{deployment}) {
			t.Errorf("shard %q: the Job stops %v and may stop %v, want Deployment %s", shard, stopped, allowed, deployment)
		}
	}
}

// rightsOf returns the rights that the rules of each role grant, as group/resource, verb and names.
func rightsOf(roles map[string]any) map[string][]string {
	texts := func(of any) (out []string) {
		list, _ := of.([]any)
		for _, one := range list {
			out = append(out, fmt.Sprint(one))
		}
		return out
	}
	out := map[string][]string{}
	for role, rules := range roles {
		list, _ := rules.([]any)
		for _, r := range list {
			rule, _ := r.(map[string]any)
			for _, group := range texts(rule["apiGroups"]) {
				for _, resource := range texts(rule["resources"]) {
					for _, verb := range texts(rule["verbs"]) {
						out[role] = append(out[role], fmt.Sprint(group, "/", resource, " ", verb, " ", rule["resourceNames"]))
					}
				}
			}
		}
		slices.Sort(out[role])
	}
	return out
}
