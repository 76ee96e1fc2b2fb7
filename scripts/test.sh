#!/bin/sh
# Runs all Go tests, those in e2e/ too, with the race detector where there is a C compiler. Arguments go to go test.
set -eu
race=-race
export CGO_ENABLED=1
if ! sh scripts/has-cc.sh; then
	echo "test: no C compiler, running without the race detector (to get it: apt-get install gcc libc6-dev)"
	race=
	CGO_ENABLED=0
fi
# Under the race detector, on two cores, a package may take longer than the ten minutes that go test would give it.
exec "${GO:-go}" test $race -tags e2e -count=1 -shuffle=on -timeout 40m "$@" ./...
