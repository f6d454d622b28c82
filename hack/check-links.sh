#!/usr/bin/env bash
# Fails when a Markdown file links to a file of the repository that is not there, names a test that does not exist, or a folder
# is not in the layout of CONTRIBUTING.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

broken=0
while IFS= read -r document; do
	while IFS= read -r target; do
		target=${target%%#*}
		[[ -z $target || $target == *://* || $target == mailto:* ]] && continue
		if [[ ! -e $(dirname "$document")/$target ]]; then
			echo "$document: link to $target, which does not exist" >&2
			broken=1
		fi
		# Code is no link, so it is taken out first.
	done < <(awk '/^ *```/ {code = !code; next} !code {gsub(/`[^`]*`/, ""); print}' "$document" |
		grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(|\)$//g')
	while IFS= read -r name; do
		if ! git grep -qE "^func $name\\(" -- '*_test.go'; then
			echo "$document: there is no test called $name" >&2
			broken=1
		fi
	done < <(grep -oE '`(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*`' "$document" | tr -d '`' | sort -u)
done < <(git ls-files '*.md')
# The layout names every folder.
while IFS= read -r folder; do
	if ! grep -q "^$folder/" CONTRIBUTING.md; then
		echo "CONTRIBUTING.md: the layout lacks the folder $folder/" >&2
		broken=1
	fi
done < <(git ls-files | grep / | grep -v '^\.' | cut -d/ -f1 | sort -u)
exit $broken
