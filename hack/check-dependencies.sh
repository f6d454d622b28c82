#!/usr/bin/env bash
# Fails when docs/dependencies.md and the go.mod files disagree: every direct dependency has a line with a reason there, and
# every line there is a direct dependency still. Reads files only; nothing is downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
document=docs/dependencies.md

# required prints "FOLDER MODULE" for each direct requirement of a go.mod. $1: path of a go.mod. The package of a tool is replaced by
# its module: the longest required path that the package begins with.
required() {
	local folder=${1%go.mod}
	folder=${folder%/}
	awk -v folder="${folder:-root}" '
		{ comment = $0 ~ /\/\/ indirect/; sub(/[ \t]*\/\/.*/, "") }
		$1 == ")"                { block = ""; next }
		$2 == "("                { block = $1; next }
		block == "" && NF > 1    { kind = $1; path = $2 }
		block != "" && NF > 0    { kind = block; path = $1 }
		kind == "" || path == "" { next }
		kind == "require"        { known[path]; if (!comment) direct[path] }
		kind == "tool"           { tools[path] }
		                         { kind = path = "" }
		END {
			for (tool in tools) {
				holder = ""
				for (path in known)
					if (index(tool "/", path "/") == 1 && length(path) > length(holder)) holder = path
				direct[holder == "" ? tool : holder]
			}
			for (path in direct)
				if (path !~ /^github\.com\/vmstencil\/stencil(\/|$)/) print folder, path
		}' "$1"
}

# explained prints the same for the document's tables: | `MODULE` | `FOLDER`, `FOLDER` | reason |
explained() {
	awk -F '|' '/^\| `/ {
		gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3)
		reason = $4; gsub(/ /, "", reason)
		if (reason == "") next
		count = split($3, folders, ",")
		for (i = 1; i <= count; i++) print folders[i], $2
	}' "$document"
}

sources=$(git ls-files 'go.mod' '*/go.mod')
wanted=$(while read -r file; do required "$file"; done <<<"$sources" | LC_ALL=C sort -u)
written=$(explained | LC_ALL=C sort -u)
status=0
while read -r folder module; do
	[[ -n $module ]] || continue
	echo "$document: no line says why ${folder/#root/the root} needs $module" >&2
	status=1
done < <(LC_ALL=C comm -23 <(echo "$wanted") <(echo "$written"))
while read -r folder module; do
	[[ -n $module ]] || continue
	echo "$document: the line on $module names ${folder/#root/the root}, which does not need it directly" >&2
	status=1
done < <(LC_ALL=C comm -13 <(echo "$wanted") <(echo "$written"))
exit $status
