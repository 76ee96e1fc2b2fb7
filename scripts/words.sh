#!/bin/sh
# Counts what people read: README.md, the pages for users, those for developers, and the help of run (of bin/perfagent,
# which make build makes). With -check it fails if one of them is too long.
set -eu
cd "$(dirname "$0")/.."
status=0

# row NAME LIMIT UNIT COMMAND...: prints a row for the command's output. LIMIT is the most lines or words, or "-".
row() {
	name=$1 limit=$2 unit=$3
	shift 3
	# shellcheck disable=SC2046 # two words
	set -- $("$@" | wc -lw)
	case $unit in lines) count=$1 ;; *) count=$2 ;; esac
	verdict=
	if [ "$limit" != - ]; then verdict="at most $limit $unit"; fi
	if [ "$limit" != - ] && [ "$count" -gt "$limit" ]; then
		verdict="too long: $verdict"
		status=1
	fi
	printf '%-16s %7d %7d  %s\n' "$name" "$1" "$2" "$verdict"
}

printf '%-16s %7s %7s\n' '' lines words
row README.md 150 lines cat README.md
row 'docs/*.md' 45000 words cat docs/*.md
row 'docs/dev/*.md' 12000 words cat docs/dev/*.md
if [ -x bin/perfagent ]; then
	row 'run -h' - - bin/perfagent run -h
	row 'run --help' - - bin/perfagent run --help
fi

if [ "${1:-}" = -check ]; then exit $status; fi
