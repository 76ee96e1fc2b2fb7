#!/bin/sh
# gofmt, go vet, a pinned staticcheck, and the house rules of scripts/funcs.go. The tag e2e adds the tests in e2e/.
set -eu
go=${GO:-go}
version=0.8.2
staticcheck=.tools/bin/staticcheck
export CGO_ENABLED=0

echo "lint: gofmt"
unformatted=$(find . -name '.?*' -prune -o -name '*.go' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	echo "lint: run gofmt -w on:"
	echo "$unformatted"
	exit 1
fi

# What makes the packages is a module of its own.
modules=". scripts/dist"

echo "lint: go vet"
for module in $modules; do "$go" -C "$module" vet -tags e2e ./...; done

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

echo "lint: house rules"
"$go" run scripts/funcs.go
