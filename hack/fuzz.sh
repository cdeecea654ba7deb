#!/bin/sh
# Runs every fuzz target for a time, one after the other: hack/fuzz.sh TIME [NAME]
#
# NAME is a pattern of targets, such as FuzzHTTP. FUZZ_PARALLEL limits the processes of a target. Go keeps the inputs it
# finds in its build cache, so that the next run continues from them; `go clean -fuzzcache` deletes them. An input that
# fails is written to testdata/fuzz of the package: fix the defect and commit the input, which `make test` then runs.
set -eu
cd "$(dirname "$0")/.."
time=${1:?usage: hack/fuzz.sh TIME [NAME]}
pattern=${2:-.}
out=$(mktemp)
trap 'rm -f "$out"' EXIT INT TERM
failed=0
for target in $(git grep -o 'func Fuzz[A-Za-z0-9_]*(f \*testing.F)' -- '*_test.go' | sed 's/\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*/\1:\2/' | sort); do
	name=${target#*:}
	echo "$name" | grep -q -e "$pattern" || continue
	status=ok
	go test "./${target%:*}" -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 2s ${FUZZ_PARALLEL:+-parallel "$FUZZ_PARALLEL"} >"$out" 2>&1 || status=FAILED
	printf '%-8s%-45s%s\n' "$status" "$target" "$(sed -n 's/.*execs: \([0-9]*\).*/\1 executions/p' "$out" | tail -n 1)"
	if [ "$status" = FAILED ]; then
		cat "$out"
		failed=1
	fi
done
exit $failed
