#!/bin/sh
# Runs a lane of the tests; docs/testing.md says what is in which.
# Usage: scripts/test.sh test | e2e | race | times [ARGUMENT OF GO TEST...]
set -eu
go=${GO:-go}
lane=$1
shift

# run runs tests. make lint has vetted them, and no debugger needs symbols.
run() { "$go" test -vet=off -ldflags=-w -count=1 -shuffle=on -timeout 20m "$@"; }

# outside lists the packages of end-to-end tests that are not below e2e/: tests that need the program's own names.
outside() {
	git ls-files '*_test.go' | grep -v '^e2e/' | xargs grep -l '^//go:build e2e$' | xargs -n 1 dirname | sort -u | sed 's|^|./|'
}

# shared lists the packages in which goroutines share something.
shared="./agent/... ./collector ./collector/gpu ./collector/host ./collector/intake ./collector/marks ./internal/parallel
	./internal/timeout ./job ./mlflow ./reporter ./reporter/journal ./reporter/reportfile ./store"

export CGO_ENABLED=0
status=0
case $lane in
test)
	# Most tests wait for a job or a server, so more of them run at once than there are CPUs. The longest package is first.
	run -p 3 -parallel 8 "$@" ./cmd/... ./...
	;;
times)
	run -p 3 -parallel 8 -json ./cmd/... ./... >.tools/times.json || status=1
	"$go" run scripts/testtimes.go docs/testing.md <.tools/times.json
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
	(cd scripts/dist && run "$@" ./...) || status=1 # a module of its own
	# One package after the other: an emulated machine and a browser that share two cores with all else get too little.
	run -tags e2e -p 1 -parallel 4 "$@" ./e2e/... || status=1
	;;
*)
	echo "test: no lane $lane (there are test, e2e, race and times)" >&2
	exit 2
	;;
esac
exit $status
