#!/bin/sh
# Regenerates all generated files in the repository, for `make generate`.
set -eu
cd "$(dirname "$0")/.."

# The schema as PostgreSQL has it, from which sqlc generates code.
go build -o bin/hacktest ./hack/test
bin/hacktest -only postgres -- go run ./hack/schema
(cd internal/postgres && ../../hack/tool.sh sqlc generate)
go run ./hack/later

# In a temporary directory first, so that a failure changes nothing and the CRD of a removed kind is deleted.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT INT TERM
hack/tool.sh controller-gen object crd rbac:roleName=mnemo-operator \
	paths=./api/... paths=./controllers/... \
	output:crd:dir="$fresh/crd" output:rbac:dir="$fresh/rbac"
rm -f config/crd/bases/*.yaml
cp "$fresh"/crd/*.yaml config/crd/bases/
cp "$fresh/rbac/role.yaml" config/rbac/
# A chart can only read its own files.
cp "$fresh"/crd/*.yaml "$fresh/rbac/role.yaml" charts/mnemo/files/

# The chart's reference.
go run ./hack/chartdocs charts/mnemo

# The contract, also in the temporary directory first.
go run ./hack/openapi >"$fresh/openapi.json"
cp "$fresh/openapi.json" api/openapi.json

# The client of the contract.
hack/tool.sh oapi-codegen -config api/client/oapi-codegen.yaml -templates api/client/templates api/openapi.json

# The models and clients of the SDKs.
go run ./hack/sdk/generate
