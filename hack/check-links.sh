#!/usr/bin/env bash
# Fails when a Markdown file links to a file of the repository that is not there. Code is no link, so it is taken out first.
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
	done < <(awk '/^ *```/ {code = !code; next} !code {gsub(/`[^`]*`/, ""); print}' "$document" |
		grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(|\)$//g')
done < <(git ls-files '*.md')
exit $broken
