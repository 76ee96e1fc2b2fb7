#!/bin/sh
# Counts the lines of the product by capability, for the table in scripts/sizes.md: see scripts/loc.go.
# scripts/loc.sh -update writes the table, -check prints violations.
set -eu
exec "${GO:-go}" run scripts/loc.go "$@"
