#!/bin/sh
# Succeeds when the C compiler that Go would use can build a program, which Go's race detector needs.
set -eu
cc=$("${GO:-go}" env CC)
# CC may hold arguments, so it is split into words.
# shellcheck disable=SC2086
printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $cc -x c -o /dev/null - 2>/dev/null
