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

// TestValidation asks the API server itself, whose schema and CEL rules are
// the only validation there is.
func TestValidation(t *testing.T) {
	t.Parallel()
	users := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"u%d"}`, i)
		}
		return `{"users":[` + strings.Join(list, ",") + `]}`
	}
	for spec, refused := range map[string]string{ // part of the message; "" when accepted
		`{}`: "",
		`{"displayName":"` + strings.Repeat("x", 200) + `"}`:     "",
		`{"displayName":"` + strings.Repeat("x", 201) + `"}`:     "spec.displayName",
		`{"deletionPolicy":"Keep"}`:                              "spec.deletionPolicy",
		`{"isolation":"Shared"}`:                                 "",
		`{"isolation":"None"}`:                                   "spec.isolation",
		`{"tokenOverlap":"1h30m"}`:                               "",
		`{"tokenOverlap":"720h"}`:                                "",
		`{"tokenOverlap":"721h"}`:                                "at most 720h",
		`{"tokenOverlap":"-1h"}`:                                 "must be a duration such as 30m or 24h",
		`{"tokenOverlap":"1d"}`:                                  "must be a duration such as 30m or 24h",
		`{"users":[{"name":"a.b1"}]}`:                            "",
		`{"users":[{"name":"a-b"}]}`:                             "and no dash",
		`{"users":[{"name":"A"}]}`:                               "takes lower-case letters",
		`{"users":[{"name":".a"}]}`:                              "takes lower-case letters",
		`{"users":[{"name":"a..b"}]}`:                            "single dots",
		`{"users":[{"name":""}]}`:                                "spec.users[0].name",
		`{"users":[{}]}`:                                         "spec.users[0].name",
		`{"users":[{"name":"` + strings.Repeat("a", 64) + `"}]}`: "spec.users[0].name",
		`{"users":[{"name":"a"},{"name":"a"}]}`:                  "Duplicate value",
		`{"users":[{"name":"a","email":"nobody"}]}`:              "an address such as alice@acme.test",
		`{"users":[{"name":"a","tokenGeneration":0}]}`:           "spec.users[0].tokenGeneration",
		users(1000): "",
		users(1001): "spec.users",
		`{"users":[{"name":"a"},{"name":"b"}],"quota":{"users":1}}`:          "users lists more than quota.users allows",
		`{"quota":{"memories":0,"conversations":0,"storage":0}}`:             "",
		`{"quota":{"memories":-1}}`:                                          "spec.quota.memories",
		`{"quota":{"memories":1000000001}}`:                                  "spec.quota.memories",
		`{"quota":{"storage":"10Gi"}}`:                                       "",
		`{"quota":{"storage":"8Pi"}}`:                                        "",
		`{"quota":{"storage":"9Pi"}}`:                                        "0 to 8Pi",
		`{"quota":{"storage":"-1"}}`:                                         "0 to 8Pi",
		`{"quota":{"storage":-1}}`:                                           "0 to 8Pi",
		`{"quota":{"storage":"much"}}`:                                       "must be a quantity such as 10Gi",
		`{"quota":{"perUser":{"conversations":-1}}}`:                         "spec.quota.perUser.conversations",
		`{"oidc":{"issuer":"https://id.test","emailDomains":["acme.test"]}}`: "",
		`{"oidc":{"issuer":"http://id.test"}}`:                               "https:// URL of the identity provider",
		`{"oidc":{"issuer":"https://id.test","emailDomains":["acme"]}}`:      "domains in lower case",
		`{"claim":"6f1f1e4e-0000-4000-8000-000000000000"}`:                   "",
		`{"claim":"acme"}`:                                                   "the uid of a deleted Tenant",
	} {
		name := spec
		if len(name) > 60 {
			name = name[:60]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectVerdict(t, create(t, "acme", spec), refused)
		})
	}
	t.Run("long name", func(t *testing.T) {
		t.Parallel()
		expectVerdict(t, create(t, strings.Repeat("a", 63), `{}`), "")
		expectVerdict(t, create(t, strings.Repeat("a", 64), `{}`), "at most 63 characters")
	})
}

// create asks for a Tenant without making it.
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

func expectVerdict(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused != "" && !apierrors.IsInvalid(err):
		t.Errorf("the answer is %v, want it refused as invalid", err)
	case refused != "" && !strings.Contains(err.Error(), refused):
		t.Errorf("the answer is %v, want it to name %s", err, refused)
	case strings.Contains(refused, " ") && !strings.Contains(refused, "quantity") && strings.Contains(err.Error(), "should match"):
		// Kubernetes' own type of a quantity brings its expression along.
		t.Errorf("the answer is %v, want a sentence and no regular expression", err)
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*v1alpha1.Tenant)
		refused string
	}{
		"tokenGeneration grows":   {func(tn *v1alpha1.Tenant) { tn.Spec.Users[1].TokenGeneration = 4 }, ""},
		"tokenGeneration shrinks": {func(tn *v1alpha1.Tenant) { tn.Spec.Users[1].TokenGeneration = 2 }, "may not decrease"},
		"tokenGeneration shrinks in another order": {func(tn *v1alpha1.Tenant) {
			tn.Spec.Users = []v1alpha1.TenantUser{{Name: "bob", TokenGeneration: 2}, {Name: "alice"}}
		}, "may not decrease"},
		"user removed":        {func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[:1] }, ""},
		"isolation and back":  {func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared }, ""},
		"policy":              {func(tn *v1alpha1.Tenant) { tn.Spec.DeletionPolicy = v1alpha1.Delete }, ""},
		"quota of users less": {func(tn *v1alpha1.Tenant) { tn.Spec.Quota.Users = new(int64(1)) }, "quota.users"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			tn := w.newTenant("alice", "bob")
			tn.Spec.Users[1].TokenGeneration = 3
			w.mustCreate(t, tn)
			test.change(tn)
			expectVerdict(t, w.Update(t.Context(), tn), test.refused)
		})
	}
}
