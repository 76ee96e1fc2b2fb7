#!/bin/sh
# Runs a lane of tests N times, in random order and with three busy loops, and prints how often each test failed. The output of each run is in .tools/flaky/. Exits with 1 if anything failed.
# Usage: scripts/flaky.sh N [test | e2e | race]
set -eu
runs=$1
lane=${2:-test}
dir=.tools/flaky
rm -rf "$dir"
mkdir -p "$dir"

loops=
for _ in 1 2 3; do
	# Bounded, in case this script is killed.
	timeout 6h sh -c 'while :; do :; done' &
	loops="$loops $!"
done
# shellcheck disable=SC2086 # several words
trap 'kill $loops 2>/dev/null' EXIT
trap 'exit 130' INT TERM

red=0
for k in $(seq "$runs"); do
	begin=$(date +%s)
	if make "$lane" >"$dir/$k.log" 2>&1; then result=passed; else
		result=FAILED
		red=$((red + 1))
	fi
	echo "flaky: run $k of $runs of make $lane $result in $(($(date +%s) - begin)) s"
done

echo "flaky: $red of $runs runs were red"
[ "$red" = 0 ] && exit
grep -h -o -E '^ *--- FAIL: [^ ]+|^(panic|fatal error): .*|^FAIL	[^ ]+ \[.*' "$dir"/*.log | sed 's/^ *//' | sort | uniq -c | sort -rn
exit 1
