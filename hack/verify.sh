#!/bin/sh
# Fails when what is generated differs from what is here, and leaves the fresh files to be committed.
# It compares before and after, not with the last commit, so that it can be used on work in progress.
set -eu
cd "$(dirname "$0")/.."

generated="api config internal/postgres/db charts/mnemo/files"
index=$(mktemp)
trap 'rm -f "$index"' EXIT INT TERM

# The tree of everything not ignored, written beside the real index, which stays as it is.
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
	echo "These files are generated and were not up to date. They are now: look at them and commit them." >&2
	exit 1
fi
