#!/bin/sh
# Runs the Go tests, with the race detector where there is a C compiler. Arguments go to go test.
set -eu
race=-race
export CGO_ENABLED=1
if ! sh scripts/has-cc.sh; then
	echo "test: no C compiler, running without the race detector (to get it: apt-get install gcc libc6-dev)"
	race=
	CGO_ENABLED=0
fi
# The commands' tests take nine minutes on two cores; go test would give up after ten.
exec "${GO:-go}" test $race -count=1 -shuffle=on -timeout 40m "$@" ./...
