#!/bin/sh
# Counts the lines of the product by capability, as the table in docs/architecture.md has them: see scripts/loc.go.
# scripts/loc.sh -update writes the table, -check prints what is wrong.
set -eu
exec "${GO:-go}" run scripts/loc.go "$@"
