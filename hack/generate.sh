#!/bin/sh
# Regenerates everything that is generated and committed. Run it by `make generate`.
set -eu
cd "$(dirname "$0")/.."

(cd internal/postgres && ../../hack/tool.sh sqlc generate)

# Aside first, so that a failure leaves what is there, and a removed kind leaves no CRD behind.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT INT TERM
hack/tool.sh controller-gen object crd rbac:roleName=mnemo-operator \
	paths=./api/... paths=./controllers/... \
	output:crd:dir="$fresh/crd" output:rbac:dir="$fresh/rbac"
rm -f config/crd/bases/*.yaml
cp "$fresh"/crd/*.yaml config/crd/bases/
cp "$fresh/rbac/role.yaml" config/rbac/
# A chart reads its own files only.
cp "$fresh"/crd/*.yaml "$fresh/rbac/role.yaml" charts/mnemo/files/

# The contract likewise.
go run ./hack/openapi >"$fresh/openapi.json"
cp "$fresh/openapi.json" api/openapi.json

# The client of the contract.
hack/tool.sh oapi-codegen -config api/client/oapi-codegen.yaml -templates api/client/templates api/openapi.json
