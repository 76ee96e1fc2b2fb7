#!/bin/sh
# Runs a lane of the tests; docs/dev/testing.md describes the lanes.
# Usage: scripts/test.sh test | e2e | race | times [ARGUMENT OF GO TEST...]
set -eu
go=${GO:-go}
lane=$1
shift

# run runs tests without vet, which make lint runs, and without symbols for debuggers.
run() { "$go" test -vet=off -ldflags=-w -count=1 -shuffle=on -timeout 60m "$@"; }

# outside lists the packages outside e2e/ with end-to-end tests: those that use unexported names of the program.
outside() {
	git ls-files '*_test.go' | grep -v '^e2e/' | xargs grep -l '^//go:build e2e$' | xargs -n 1 dirname | sort -u | sed 's|^|./|'
}

# shared lists the packages with goroutines that share data.
shared="./agent/... ./collector ./collector/gpu ./collector/host ./collector/intake ./collector/marks ./internal/parallel
	./internal/timeout ./job ./mlflow ./reporter ./reporter/journal ./reporter/reportfile ./store"

export CGO_ENABLED=0
status=0
case $lane in
test)
	# Most tests wait for a job or a server, so more tests than CPUs run at once. The slowest package comes first.
	run -p 3 -parallel 8 "$@" ./cmd/... ./...
	;;
times)
	run -p 3 -parallel 8 -json ./cmd/... ./... >.tools/times.json || status=1
	"$go" run scripts/testtimes.go <.tools/times.json
	;;
race)
	if ! sh scripts/has-cc.sh; then
		echo "test: no C compiler, nothing is tried with the race detector (to get it: apt-get install gcc libc6-dev)"
		[ "${CI:-}" != true ]
		exit
	fi
	# shellcheck disable=SC2086 # several words
	CGO_ENABLED=1 run -race -short "$@" $shared
	;;
e2e)
	# shellcheck disable=SC2046 # several words
	run -tags e2e -p 3 -parallel 8 -run '^TestE2E_' "$@" $(outside) || status=1
	(cd scripts/dist && run "$@" ./...) || status=1 # a separate module
	# One package at a time: an emulated machine and a browser would starve if they shared two cores with the rest.
	run -tags e2e -p 1 -parallel 4 "$@" ./e2e/... || status=1
	;;
*)
	echo "test: no lane $lane (there are test, e2e, race and times)" >&2
	exit 2
	;;
esac
exit $status
