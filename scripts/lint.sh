#!/bin/sh
# Checks for built files, gofmt, go vet, a pinned staticcheck, and the rules of scripts/style.go and scripts/loc.go. The
# tag e2e adds the tests in e2e/.
set -eu
go=${GO:-go}
version=0.8.2
staticcheck=.tools/bin/staticcheck
export CGO_ENABLED=0

# A binary left by go build is easily committed by mistake, and stays in the history.
echo "lint: no file of 1 MiB or more"
large=$(git ls-files -z | sed -z 's|^|./|' | xargs -0 -r sh -c 'find "$@" -maxdepth 0 -size +1023k || true' sh)
if [ -n "$large" ]; then
	echo "lint: too large for the repository:"
	echo "$large"
	exit 1
fi

echo "lint: gofmt"
unformatted=$(find . -name '.?*' -prune -o -name '*.go' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	echo "lint: run gofmt -w on:"
	echo "$unformatted"
	exit 1
fi

# scripts/dist is a separate module.
modules=". scripts/dist"

echo "lint: go vet"
for module in $modules; do "$go" -C "$module" vet -tags e2e ./...; done
"$go" -C scripts/dist vet -tags wheel .

case $("$staticcheck" -version 2>/dev/null || true) in
*"($version)"*) ;;
*)
	echo "lint: installing staticcheck $version"
	GOBIN=$(pwd)/.tools/bin "$go" install "honnef.co/go/tools/cmd/staticcheck@v$version"
	;;
esac
echo "lint: staticcheck $version"
staticcheck=$(pwd)/$staticcheck
for module in $modules; do (cd "$module" && "$staticcheck" -tags e2e ./...); done

# make e2e finds these files by name, make test excludes them by tag.
echo "lint: names of end-to-end tests"
tagged=$(git ls-files '*_test.go' ':!e2e' | xargs grep -l '^//go:build e2e$')
others=$(git ls-files '*_test.go' ':!e2e' | xargs grep -L '^//go:build e2e$')
# shellcheck disable=SC2086 # several words
if grep -n '^func Test' $tagged | grep -v ':func TestE2E_' || grep -n '^func TestE2E_' $others; then
	echo "lint: a test has the tag e2e if and only if its name begins with TestE2E_"
	exit 1
fi

echo "lint: house rules"
"$go" run scripts/style.go
sh scripts/loc.sh -check
sh scripts/words.sh -check
