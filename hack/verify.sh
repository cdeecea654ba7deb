#!/bin/sh
# Fails if generated files are out of date, and updates them.
# It compares the files before and after, not with the last commit, so that it works with uncommitted changes.
set -eu
cd "$(dirname "$0")/.."

generated="api config internal/postgres/db internal/postgres/schema.sql charts/mnemo/files charts/mnemo/README.md sdk"
index=$(mktemp)
trap 'rm -f "$index"' EXIT INT TERM

# Writes a tree of all files that are not ignored. It uses a temporary index and does not change the real one.
snapshot() {
	rm -f "$index"
	# shellcheck disable=SC2086 # a list of paths
	GIT_INDEX_FILE=$index git add --all -- $generated
	GIT_INDEX_FILE=$index git write-tree
}

before=$(snapshot)
hack/generate.sh
after=$(snapshot)
if [ "$before" != "$after" ]; then
	git --no-pager diff --stat "$before" "$after"
	echo "These generated files were out of date. They are now updated: review and commit them." >&2
	exit 1
fi
