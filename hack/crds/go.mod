// The custom resources of others that the chart and the OLM bundle make; the tests take their definitions from these modules.
module github.com/mnemo-dev/mnemo/hack/crds

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.5.4
	github.com/cloudnative-pg/cloudnative-pg v1.29.1
	github.com/operator-framework/api v0.30.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.4.1
)
