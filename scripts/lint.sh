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

echo "lint: go vet"
"$go" vet -tags e2e ./...

case $("$staticcheck" -version 2>/dev/null || true) in
*"($version)"*) ;;
*)
	echo "lint: installing staticcheck $version"
	GOBIN=$(pwd)/.tools/bin "$go" install "honnef.co/go/tools/cmd/staticcheck@v$version"
	;;
esac
echo "lint: staticcheck $version"
"$staticcheck" -tags e2e ./...

echo "lint: house rules"
"$go" run scripts/funcs.go
