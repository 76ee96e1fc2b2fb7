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
# Most tests that run beside others wait for a job or a server; four of them keep two cores busy.
run() { "${GO:-go}" test $race -count=1 -shuffle=on -parallel 4 -timeout 40m "$@"; }

# The end-to-end tests come afterwards, one package after the other: an emulated machine and a browser that share two
# cores with all other tests get too little of them.
status=0
run "$@" ./... || status=1
(cd scripts/dist && run "$@" ./...) || status=1 # a module of its own
run -tags e2e -p 1 "$@" ./e2e/... || status=1
exit $status
