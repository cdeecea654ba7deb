package controllers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// TestValidation creates Tenants at the real API server: the schema and its CEL
// rules are the only validation.
func TestValidation(t *testing.T) {
	t.Parallel()
	users := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"u%d"}`, i)
		}
		return `{"users":[` + strings.Join(list, ",") + `]}`
	}
	for spec, refused := range map[string]string{ // part of the message; "" if accepted
		`{}`: "",
		`{"displayName":"` + strings.Repeat("x", 200) + `"}`:     "",
		`{"displayName":"` + strings.Repeat("x", 201) + `"}`:     "spec.displayName",
		`{"displayName":"Müller & Söhne — 株式会社 👩‍💻"}`:            "",
		`{"displayName":"Acme\nGmbH"}`:                           "must not contain control characters",
		`{"displayName":"\u001b[31mAcme"}`:                       "must not contain control characters",
		`{"displayName":"Acme\u0085"}`:                           "must not contain control characters",
		`{"displayName":"Acme\u2028GmbH"}`:                       "must not contain control characters",
		`{"deletionPolicy":"Keep"}`:                              "spec.deletionPolicy",
		`{"isolation":"Shared"}`:                                 "",
		`{"placement":{"cell":"eu-1"}}`:                          "",
		`{"placement":{"region":"eu"}}`:                          "",
		`{"placement":{}}`:                                       "set either cell or region",
		`{"placement":{"cell":"eu-1","region":"eu"}}`:            "set either cell or region",
		`{"isolation":"None"}`:                                   "spec.isolation",
		`{"tokenOverlap":"1h30m"}`:                               "",
		`{"tokenOverlap":"720h"}`:                                "",
		`{"tokenOverlap":"721h"}`:                                "must be at most 720h",
		`{"tokenOverlap":"-1h"}`:                                 "must be a duration such as 30m or 24h",
		`{"tokenOverlap":"1d"}`:                                  "must be a duration such as 30m or 24h",
		`{"users":[{"name":"a.b1"}]}`:                            "",
		`{"users":[{"name":"a-b"}]}`:                             "dashes are not allowed",
		`{"users":[{"name":"A"}]}`:                               "must consist of lower-case letters",
		`{"users":[{"name":".a"}]}`:                              "must consist of lower-case letters",
		`{"users":[{"name":"a..b"}]}`:                            "single dots",
		`{"users":[{"name":""}]}`:                                "spec.users[0].name",
		`{"users":[{}]}`:                                         "spec.users[0].name",
		`{"users":[{"name":"` + strings.Repeat("a", 64) + `"}]}`: "spec.users[0].name",
		`{"users":[{"name":"a"},{"name":"a"}]}`:                  "Duplicate value",
		`{"users":[{"name":"a","email":"nobody"}]}`:              "an email address such as alice@acme.test",
		`{"users":[{"name":"a","tokenGeneration":0}]}`:           "spec.users[0].tokenGeneration",
		`{"applications":[{"name":"web.1","scopes":["read","write","admin"],"allowedOrigins":["https://app.acme.test","http://localhost:3000"],"requestsPerMinute":0}]}`: "",
		`{"applications":[{"name":"web"}]}`:                                                                          "spec.applications[0].scopes",
		`{"applications":[{"name":"web","scopes":[]}]}`:                                                              "spec.applications[0].scopes",
		`{"applications":[{"name":"web","scopes":["delete"]}]}`:                                                      "Unsupported value",
		`{"applications":[{"name":"web","scopes":["read","read"]}]}`:                                                 "Duplicate value",
		`{"applications":[{"name":"a-b","scopes":["read"]}]}`:                                                        "dashes are not allowed",
		`{"applications":[{"name":"a","scopes":["read"]},{"name":"a","scopes":["read"]}]}`:                           "Duplicate value",
		`{"applications":[{"name":"a","scopes":["read"],"requestsPerMinute":-1}]}`:                                   "spec.applications[0].requestsPerMinute",
		`{"applications":[{"name":"a","scopes":["read"],"tokenGeneration":0}]}`:                                      "spec.applications[0].tokenGeneration",
		applicationWithOrigin("*"):                                                                                   "an origin is a scheme and a host",
		applicationWithOrigin("https://*.acme.test"):                                                                 "an origin is a scheme and a host",
		applicationWithOrigin("https://app.acme.test/"):                                                              "an origin is a scheme and a host",
		applicationWithOrigin("https://app.acme.test/x"):                                                             "an origin is a scheme and a host",
		applicationWithOrigin("https://App.acme.test"):                                                               "an origin is a scheme and a host",
		applicationWithOrigin("https://u:p@app.acme.test"):                                                           "an origin is a scheme and a host",
		applicationWithOrigin("app.acme.test"):                                                                       "an origin is a scheme and a host",
		applicationWithOrigin("null"):                                                                                "an origin is a scheme and a host",
		applicationWithOrigin("ftp://acme.test"):                                                                     "an origin is a scheme and a host",
		`{"webhooks":[{"name":"a.1","url":"https://acme.test/events?a=b","events":["memory.create","user.*","*"]}]}`: "",
		`{"webhooks":[{"name":"a"}]}`:                                                                                "spec.webhooks[0].url",
		`{"webhooks":[{"name":"a-b","url":"https://acme.test"}]}`:                                                    "dashes are not allowed",
		`{"webhooks":[{"name":"a","url":"https://acme.test"},{"name":"a","url":"https://acme.test"}]}`:               "Duplicate value",
		`{"webhooks":[{"name":"a","url":"https://acme.test","events":[]}]}`:                                          "spec.webhooks[0].events",
		`{"webhooks":[{"name":"a","url":"https://acme.test","events":["memory.*","memory.*"]}]}`:                     "Duplicate value",
		`{"webhooks":[{"name":"a","url":"https://acme.test","secretGeneration":0}]}`:                                 "spec.webhooks[0].secretGeneration",
		webhookWithEvent("memories.*"):                                                                               `supported values: "*", "memory.*"`,
		webhookWithEvent("memory"):                                                                                   `supported values: "*", "memory.*"`,
		webhookWithEvent("memory.created"):                                                                           `"memory.create", "memory.update"`,
		webhookWithURL("https://[64:ff9b::7f00:1%25lo]/"):                                                            "url must be a URL",
		webhookWithURL("http://10.1.2.3:8080/"):                                                                      "",
		webhookWithURL("https://[2001:db8::1]/"):                                                                     "",
		webhookWithURL("acme.test"):                                                                                  "url must be a URL",
		webhookWithURL("ftp://acme.test"):                                                                            "url must be a URL",
		webhookWithURL("https:///events"):                                                                            "url must be a URL",
		webhookWithURL("https://acme.test/#a"):                                                                       "url must be a URL",
		webhookWithURL("https://a:b@acme.test"):                                                                      "url must be a URL",
		webhookWithURL("https://a@acme.test/"):                                                                       "url must be a URL",
		webhookWithURL("https://acme.test/a@b"):                                                                      "",
		users(1000):                                                                                                  "",
		users(1001):                                                                                                  "spec.users",
		`{"users":[{"name":"a"},{"name":"b"}],"quota":{"users":1}}`:                                                  "must not list more users than quota.users allows",
		`{"quota":{"memories":0,"conversations":0,"storage":0}}`:                                                     "",
		`{"quota":{"memories":-1}}`:                                                                                  "spec.quota.memories",
		`{"quota":{"memories":1000000001}}`:                                                                          "spec.quota.memories",
		`{"quota":{"storage":"10Gi"}}`:                                                                               "",
		`{"quota":{"storage":"8Pi"}}`:                                                                                "",
		`{"quota":{"storage":"9Pi"}}`:                                                                                "must be from 0 to 8Pi",
		`{"quota":{"storage":"-1"}}`:                                                                                 "must be from 0 to 8Pi",
		`{"quota":{"storage":-1}}`:                                                                                   "must be from 0 to 8Pi",
		`{"quota":{"storage":"much"}}`:                                                                               "must be a quantity such as 10Gi",
		`{"quota":{"storage":"100m"}}`:                                                                               "must be a whole number of bytes",
		`{"quota":{"storage":"0.5"}}`:                                                                                "must be a whole number of bytes",
		`{"quota":{"storage":"1.3Ki"}}`:                                                                              "must be a whole number of bytes",
		`{"quota":{"storage":"1.5Gi"}}`:                                                                              "",
		`{"quota":{"storage":"1e3"}}`:                                                                                "",
		`{"quota":{"storage":0.5}}`:                                                                                  "spec.quota.storage",
		`{"quota":{"storage":"9e30"}}`:                                                                               "must be from 0 to 8Pi",
		`{"quota":{"storage":"-9e30"}}`:                                                                              "must be from 0 to 8Pi",
		`{"quota":{"memories":1.5}}`:                                                                                 "spec.quota.memories",
		`{"quota":{"memories":"100m"}}`:                                                                              "spec.quota.memories",
		`{"quota":{"memories":10,"perUser":{"memories":10}}}`:                                                        "",
		`{"quota":{"memories":10,"perUser":{"memories":11}}}`:                                                        "perUser.memories must not exceed memories",
		`{"quota":{"conversations":1,"perUser":{"conversations":2}}}`:                                                "perUser.conversations must not exceed conversations",
		`{"quota":{"perUser":{"memories":5,"conversations":5}}}`:                                                     "",
		`{"quota":{"perUser":{"conversations":-1}}}`:                                                                 "spec.quota.perUser.conversations",
		`{"oidc":{"issuer":"https://id.test","emailDomains":["acme.test"]}}`:                                         "",
		`{"oidc":{"issuer":"http://id.test"}}`:                                                                       "https:// URL of the identity provider",
		`{"oidc":{"issuer":"https://id.test","emailDomains":["acme"]}}`:                                              "lower-case domain names",
		`{"adoption":{"policy":"SameName"}}`:                                                                         "",
		`{"adoption":{"policy":"Never"}}`:                                                                            "",
		`{"adoption":{"policy":"Always"}}`:                                                                           "Unsupported value",
	} {
		name := spec
		if len(name) > 60 {
			name = name[:60]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectValidated(t, create(t, "acme", spec), refused)
		})
	}
	t.Run("long name", func(t *testing.T) {
		t.Parallel()
		expectValidated(t, create(t, strings.Repeat("a", 63), `{}`), "")
		expectValidated(t, create(t, strings.Repeat("a", 64), `{}`), "at most 63 characters")
	})
}

// create creates a Tenant as a dry run.
func create(t *testing.T, name, spec string) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	object.SetNamespace("default")
	object.SetName(name)
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatalf("spec %s: %v", spec, err)
	}
	object.Object["spec"] = content
	return cluster(t).Create(t.Context(), object, client.DryRunAll)
}

func expectValidated(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("got error %v, want success", err)
	case refused != "" && !apierrors.IsInvalid(err):
		t.Errorf("got error %v, want Invalid", err)
	case refused != "" && !strings.Contains(err.Error(), refused):
		t.Errorf("got error %v, want one that contains %q", err, refused)
	case strings.Contains(refused, " ") && !strings.Contains(refused, "quantity") && !strings.Contains(refused, "bytes") && !strings.Contains(refused, "8Pi") && strings.Contains(err.Error(), "should match"):
		// The schema of a quantity adds its pattern, which Kubernetes defines.
		t.Errorf("got error %v, want one without a regular expression", err)
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*v1alpha1.Tenant)
		refused string
	}{
		"tokenGeneration increased": {func(tn *v1alpha1.Tenant) { tn.Spec.Users[1].TokenGeneration = 4 }, ""},
		"tokenGeneration decreased": {func(tn *v1alpha1.Tenant) { tn.Spec.Users[1].TokenGeneration = 2 }, ""},
		"tokenGeneration decreased and users reordered": {func(tn *v1alpha1.Tenant) {
			tn.Spec.Users = []v1alpha1.TenantUser{{Name: "bob", TokenGeneration: 2}, {Name: "alice"}}
		}, ""},
		"user removed":                          {func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[:1] }, ""},
		"isolation changed":                     {func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared }, ""},
		"deletion policy changed":               {func(tn *v1alpha1.Tenant) { tn.Spec.DeletionPolicy = v1alpha1.Delete }, ""},
		"users quota below the number of users": {func(tn *v1alpha1.Tenant) { tn.Spec.Quota.Users = new(int64(1)) }, "quota.users"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tn := e.newTenant("alice", "bob")
			tn.Spec.Users[1].TokenGeneration = 3
			e.mustCreate(t, tn)
			test.change(tn)
			expectValidated(t, e.Update(t.Context(), tn), test.refused)
		})
	}
}

func webhookWithURL(url string) string {
	return `{"webhooks":[{"name":"a","url":"` + url + `"}]}`
}

func webhookWithEvent(event string) string {
	return `{"webhooks":[{"name":"a","url":"https://acme.test","events":["` + event + `"]}]}`
}

func applicationWithOrigin(origin string) string {
	return `{"applications":[{"name":"a","scopes":["read"],"allowedOrigins":["` + origin + `"]}]}`
}
