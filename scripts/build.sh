#!/bin/sh
# Builds perfagent into the file $1, with the flags of all shipped and installed builds. GOOS and GOARCH choose another
# system, VCS=false leaves the version out.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}

# Code that runs before the Go runtime: see job/entry_linux.go.
ldflags='-s -w'
case $("$go" env GOOS)/$("$go" env GOARCH) in
linux/amd64 | linux/arm64) ldflags="$ldflags -E github.com/perfagent/perfagent/job.entry" ;;
esac

# A checkout that git cannot read (another owner, no commit yet, no git) must still build.
if [ -z "${VCS:-}" ]; then
	VCS=false
	if git rev-parse -q --verify HEAD >/dev/null 2>&1; then VCS=auto; fi
fi

# Without HTTP/2, which no server that perfagent talks to needs: 0.56 MB less.
CGO_ENABLED=0 exec "$go" build -trimpath -tags nethttpomithttp2 -buildvcs="$VCS" -ldflags "$ldflags" -o "$1" ./cmd/perfagent
