#!/usr/bin/env bash
# Names the programs that this machine lacks, before anything is built.
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need go "Go 1.26 or later (https://go.dev/dl)"
need git "git"
need "${CC:-cc}" "a C compiler (Debian: apt-get install gcc libc6-dev)"

if command -v go >/dev/null; then
	have=$(go env GOVERSION) have=${have#go}
	if [[ $(printf '%s\n' 1.26 "$have" | sort -V | head -n 1) != 1.26 ]]; then
		missing+=("Go 1.26 or later; $(command -v go) is $have")
	fi
fi
if ((${#missing[@]})); then
	printf 'This machine lacks:\n' >&2
	printf '  - %s\n' "${missing[@]}" >&2
	exit 1
fi
