package apiserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/mnemo-dev/mnemo/test/secrettest"
)

// hidesSecrets searches everything that the run left behind for the secrets that it
// created: the log, the metrics, the audit log, and all columns of the database. The
// search of a run of the whole platform is in test/e2e.
func (x *auditedRun) hidesSecrets(t *testing.T) {
	t.Helper()
	const canary = "a canary that must be found"
	var secrets, known secrettest.Secrets
	known.Add("canary", canary)
	for name, secret := range x.secrets {
		if !secrets.Add(name, secret) {
			t.Errorf("the %s is %q, want a secret", name, secret)
		}
	}
	x.ok(t, x.secrets["token after replacement"], "POST", "/api/memory", `{"text":"`+canary+`"}`)
	places := map[string]string{"log": x.log.String(), "metrics": x.metricsText(t), "audit log": fmt.Sprint(x.records(t))}
	err := secrettest.Columns(t.Context(), x.s.ownerURL, func(column, text string) { places["column "+column] = text })
	if err != nil {
		t.Fatal(err)
	}
	if len(known.Find(places["column memory_versions.text"])) == 0 {
		t.Error("the search of the database does not find a text that is there")
	}
	for place, text := range places {
		if found := secrets.Find(text); len(found) > 0 {
			t.Errorf("the %s contains the %s", place, strings.Join(found, ", the "))
		}
	}
}

func (x *auditedRun) metricsText(t *testing.T) string {
	t.Helper()
	families, err := x.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
