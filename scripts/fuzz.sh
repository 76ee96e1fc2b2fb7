#!/bin/sh
# Runs each fuzz target of each package, one after the other, for FUZZTIME; stops at the first failure.
set -eu
go=${GO:-go}
fuzztime=${FUZZTIME:-1m}
total=0
for pkg in $("$go" list ./...); do
	# Not piped into grep: a package that does not compile must stop the script.
	list=$("$go" test -list '^Fuzz' "$pkg")
	# By default minimizing inputs takes most of the minute.
	for target in $(printf '%s\n' "$list" | grep '^Fuzz' || true); do
		echo "== fuzz $pkg $target for $fuzztime"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10x "$pkg"
		total=$((total + 1))
	done
done
echo "fuzz: $total targets, $fuzztime each, no failure"
