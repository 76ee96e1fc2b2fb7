#!/bin/sh
# Makes the pictures in docs/ of the pages and of perfagent plot, for a simulated job and a simulated run on a thousand
# nodes, with a real browser. Takes half a minute. Needs chromium and the font DejaVu
# (apt-get install chromium fonts-dejavu-core).
set -eu
command -v chromium >/dev/null || { echo "pictures: chromium is missing: apt-get install chromium fonts-dejavu-core" >&2; exit 1; }
${GO:-go} test -tags e2e ./e2e/browser -count=1 -run "^TestBrowser_(Pictures|DiffPage|LivePage|IndexPage)\$" -pictures "$PWD/docs" -v
