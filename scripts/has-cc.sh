#!/bin/sh
# Succeeds if Go's C compiler can build a program. The race detector needs one.
set -eu
cc=$("${GO:-go}" env CC)
# CC may hold arguments, so it is split into words.
# shellcheck disable=SC2086
printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $cc -x c -o /dev/null - 2>/dev/null
