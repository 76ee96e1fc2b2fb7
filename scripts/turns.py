#!/usr/bin/env python3
"""Compares the CPU time of two perfagents that wrap a command, in turns: scripts/turns.py BEFORE NOW [COMMAND...]

Prints, for each, the mean over eight copies of the binary of the median of twenty runs, in ms of CPU with the command's own
(true, unless another is given), page faults, and the most resident memory. The copies matter: where the page cache puts a
file changes what it costs to start by a tenth, for as long as it stays there.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile

COPIES, RUNS = 8, 20


def measure(binary: str, command: list[str]) -> tuple[float, int, int]:
    """Returns the CPU time in ms, the minor page faults and the peak of resident memory in KiB of one run."""
    process = subprocess.Popen([binary, "run", "--", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"turns: {binary} run -- {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return 1000 * (used.ru_utime + used.ru_stime), used.ru_minflt, used.ru_maxrss


def main() -> None:
    binaries = [os.path.abspath(path) for path in sys.argv[1:3]]
    command = sys.argv[3:] or ["true"]
    if len(binaries) < 2:
        sys.exit(__doc__)
    if "/" in command[0]:
        command[0] = os.path.abspath(command[0])

    medians: list[list[float]] = [[] for _ in binaries]
    faults: list[list[int]] = [[] for _ in binaries]
    most = [0 for _ in binaries]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chdir(directory)
        for _ in range(COPIES):
            copies = [shutil.copy(binary, f"{i}") for i, binary in enumerate(binaries)]
            times: list[list[float]] = [[] for _ in binaries]
            for run in range(RUNS):
                for i in (0, 1) if run % 2 else (1, 0):
                    cpu, minor, peak = measure(os.path.abspath(copies[i]), command)
                    times[i].append(cpu)
                    faults[i].append(minor)
                    most[i] = max(most[i], peak)
            for i, list_ in enumerate(times):
                medians[i].append(statistics.median(list_))
                os.remove(copies[i])
        os.chdir("/")

    for name, list_, minor, peak in zip(("before", "now"), medians, faults, most):
        error = statistics.stdev(list_) / COPIES**0.5
        print(f"{name:7} {statistics.mean(list_):6.2f} ± {error:.2f} ms, {statistics.median(minor):.0f} faults, {peak / 1024:.1f} MiB")
    print(f"ratio   {statistics.mean(medians[1]) / statistics.mean(medians[0]):6.3f}")


if __name__ == "__main__":
    main()
