#!/bin/sh
# Regenerates everything that is generated and committed. Run it by `make generate`.
set -eu
cd "$(dirname "$0")/.."

(cd internal/postgres && ../../hack/tool.sh sqlc generate)

# Only files that exist again afterwards may stay: a removed kind leaves no CRD behind.
rm -f config/crd/bases/*.yaml
hack/tool.sh controller-gen object crd rbac:roleName=mnemo-operator \
	paths=./api/... paths=./controllers/... \
	output:crd:dir=config/crd/bases output:rbac:dir=config/rbac

# Through a file beside it: the command fails before the contract is touched.
go run ./cmd/mnemo openapi >api/openapi.json.tmp || { rm -f api/openapi.json.tmp; exit 1; }
mv api/openapi.json.tmp api/openapi.json
