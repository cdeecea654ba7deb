#!/bin/sh
# Runs a development tool at its pinned version: hack/tool.sh NAME [ARG...]
#
# hack/tools/NAME/go.mod pins it; each tool has its own module, so that their
# dependencies affect neither ours nor one another's. It is built on first use and kept under
# the user's cache: "go tool" would link it anew whenever Go's build cache was trimmed
# (5 days unused), and golangci-lint takes minutes.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
name=${1:?usage: hack/tool.sh NAME [ARG...], NAME one of: $(cd "$root/hack/tools" && echo *)}
shift
module=$root/hack/tools/$name
[ -f "$module/go.mod" ] || { echo "hack/tool.sh: no tool \"$name\"; there are: $(cd "$root/hack/tools" && echo *)" >&2; exit 2; }

# A tool that reads Go code must be built by the Go it reads, so Go's version is in the key.
key=$({ go env GOVERSION GOOS GOARCH; cat "$module/go.mod" "$module/go.sum"; } | git hash-object --stdin | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mnemo/tools
binary=$cache/$name-$key

if [ ! -x "$binary" ]; then
	mkdir -p "$cache"
	echo "building $name (once; kept in $cache)" >&2
	# Builds share compiled packages if their settings are the same: those of the Makefile for the tools
	# whose speed matters, else those of hack/devenv, without optimization (sqlc: 95 instead of 149 CPU seconds).
	case $name in
	golangci-lint | gotestsum | govulncheck | helm)
		optimization=
		;;
	*)
		optimization="all=-N -l"
		;;
	esac
	# Built under a temporary name and renamed, so that an incomplete program is never run.
	CGO_ENABLED=0 go -C "$module" build -trimpath -gcflags "$optimization" -ldflags "-s -w" \
		-o "$binary.$$" tool
	mv "$binary.$$" "$binary"
fi
exec "$binary" "$@"
