"""Runs a command beside resource-tracker, as its documentation says: a tracker of this process and its children at 1 Hz
while the command runs. Writes what it says to a file, as JSON: CPU seconds and the peak of memory in MiB.

Usage: peer_resource_tracker.py FILE COMMAND [ARGUMENT...]
"""

import json
import subprocess
import sys

from resource_tracker import ResourceTracker


def main() -> int:
    tracker = ResourceTracker(interval=1, discover_server=False, discover_cloud=False, track_system=False)
    tracker.start()
    code = subprocess.call(sys.argv[2:], close_fds=False)
    tracker.stop()
    says = {}
    if len(tracker.process_metrics) > 0:
        metrics = tracker.process_metrics
        says = {"cpu_seconds": sum(metrics["utime"]) + sum(metrics["stime"]), "memory_mib": max(metrics["memory_mib"])}
    with open(sys.argv[1], "w") as f:
        json.dump(says, f)
    return code


if __name__ == "__main__":
    sys.exit(main())
