#!/bin/sh
# Checks the subjects of commits: "area: imperative summary", at most 72 characters (see CONTRIBUTING.md).
# Applies to the commits after the one that added this file; a shallow clone is checked as far as its history goes.
set -eu

since=$(git log --diff-filter=A --format=%H -- hack/commits.sh | tail -n 1)
[ -n "$since" ] || exit 0

git log --no-merges --format='%h %s' "$since..HEAD" | LC_ALL=C awk '
	function complain(why) { printf "%s  %s\n         %s\n", commit, subject, why; bad = 1 }
	{
		commit = $1
		subject = substr($0, length($1) + 2)
		characters = subject
		gsub(/[\200-\277]/, "", characters) # all but the first byte of each UTF-8 sequence
		summary = subject
		sub(/^[^:]*: /, "", summary)
	}
	subject ~ /^Revert "/ { next }
	length(characters) > 72 { complain("longer than 72 characters") }
	subject !~ /^[a-z0-9][a-z0-9.\/_-]*(,[a-z0-9][a-z0-9.\/_-]*)*: [^ ]/ {
		complain("must begin with a lower-case area, as in \"controllers: report usage\"")
		next
	}
	summary ~ /^(add|chang|creat|document|drop|fix|improv|mov|renam|remov|replac|test|updat|us)(s|es|ed|ing) / {
		complain("must be imperative: \"add\", not \"added\"")
	}
	subject ~ /\.$/ { complain("must not end with a period") }
	END { exit bad }
' >&2
