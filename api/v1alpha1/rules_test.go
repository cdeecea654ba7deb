package v1alpha1_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// schema is a part of the schema of a resource.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	Rules      []struct {
		Rule, Message string
	} `json:"x-kubernetes-validations"`
}

// specOf returns the schema of the spec of a Tenant.
func specOf(t *testing.T) schema {
	t.Helper()
	raw, err := os.ReadFile("../../config/crd/bases/mnemo.dev_tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Root schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.Root.Properties["spec"]
}

var matches = regexp.MustCompile(`(!?)self\.matches\(r'(.*)'\)$`)

// rules are the rules of a property, each of which is a regular expression.
type rules []struct {
	form               *regexp.Regexp
	forbidden, ifNamed bool // ifNamed permits an empty text
}

func (s schema) rules(t *testing.T) rules {
	t.Helper()
	out := make(rules, len(s.Rules))
	for i, r := range s.Rules {
		m := matches.FindStringSubmatch(r.Rule)
		if m == nil {
			t.Fatalf("rule %q is no regular expression", r.Rule)
		}
		out[i].form, out[i].forbidden = regexp.MustCompile(m[2]), m[1] == "!"
		out[i].ifNamed = strings.HasPrefix(r.Rule, "self == '' ||")
	}
	return out
}

// check compares what the rules decide about a text.
func (s rules) check(t *testing.T, text string, want bool) {
	t.Helper()
	permitted := true
	for _, r := range s {
		permitted = permitted && (r.ifNamed && text == "" || r.form.MatchString(text) != r.forbidden)
	}
	if permitted != want {
		t.Errorf("%+q is permitted: %v, want %v", text, permitted, want)
	}
}

// The resource has the rule of names for every character.
func TestDisplayNameHasTheRuleOfNames(t *testing.T) {
	t.Parallel()
	name := specOf(t).Properties["displayName"].rules(t)
	for r := range rune(0x30000) {
		name.check(t, "a"+string(r), textrule.NameProblem(string(r)) == "")
		name.check(t, string(r), textrule.NameProblem(string(r)) == "" && !textrule.IsBlank(string(r)))
	}
	name.check(t, "\U000e0100", false)
	name.check(t, "", true)
}

// The resource has the rule of addresses of the rest of the platform.
func TestEmailAddressesHaveOneRule(t *testing.T) {
	t.Parallel()
	spec := specOf(t)
	email := spec.Properties["users"].Items.Properties["email"].rules(t)
	removed := spec.Properties["oidc"].Properties["removedUsers"].Items.rules(t)
	administrator := spec.Properties["oidc"].Properties["administrators"].Items.rules(t)
	for r := range rune(0x3000) {
		for _, s := range []string{"a" + string(r) + "@x.test", "a@x" + string(r) + ".test"} {
			email.check(t, s, tenant.IsEmail(s))
			lower := tenant.IsEmail(s) && (r < 'A' || r > 'Z')
			removed.check(t, s, lower)
			administrator.check(t, s, lower)
		}
	}
}
