package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// Any pod may be able to read the metrics. They identify tenants by ID, and by name
// only on request.
func TestMetricsNameTenantsOnRequest(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	spec.Namespace, spec.Name = "customer-acme", "acme-"+uuid.NewString()
	e.apply(t, spec)
	name := spec.Namespace + "/" + spec.Name
	for _, tt := range []struct {
		args       []string
		want, none string
	}{
		{nil, string(spec.ID), spec.Name},
		{[]string{"--metrics-tenant-names"}, name, string(spec.ID)},
		{[]string{"--metrics-tenants=0", "--metrics-tenant-names"}, "", spec.Name},
	} {
		labels := metricLabels(t, e, tt.args...)
		if tt.want != "" && !slices.Contains(labels, tt.want) {
			t.Errorf("serve %v: no label is %q", tt.args, tt.want)
		}
		for _, label := range labels {
			if strings.Contains(label, tt.none) || tt.want != name && strings.Contains(label, spec.Namespace) {
				t.Errorf("serve %v: a label is %q", tt.args, label)
			}
		}
	}
}

// metricLabels returns the labels of all metrics of `mnemo serve` with the given flags.
func metricLabels(t *testing.T, e *env, args ...string) (labels []string) {
	t.Helper()
	var flags struct{ telemetryFlags }
	parser, err := kong.New(&flags)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := flags.register(&stores{db: e.db}, registry, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
		}
	}
	return labels
}
