"""Reads the host through psutil on demand, for a comparison of perfagent with psutil over the same windows.

Usage: psutil_windows.py [PATH]      PATH: where disk space is asked for, / if not given

For each line "snap" on stdin, one JSON line on stdout:

    begin, end    wall clock in seconds, before the first and after the last of the reads
    cpu_fields    names of the columns of cpu_times
    cpu_times     one list of seconds for each CPU
    cpu_percent   psutil's percent for each CPU since the snap before (the first: since the start), from those cpu_times
    memory        total, available (bytes), percent
    disk          total, used, free (bytes), percent of PATH
    disk_total    read, write: bytes, psutil's sum over the whole devices; null without any
    disks         name: read, write; partitions too
    nics          name: sent, recv

Any other line is an error. Ends with its input.
"""

import json
import sys
import time

import psutil


def cpu():
    """Per-CPU times, and psutil's percent from the very same reading: two reads could be a tick apart."""
    times = psutil.cpu_times(percpu=True)
    read = psutil.cpu_times
    psutil.cpu_times = lambda percpu=False: times
    try:
        return times, psutil.cpu_percent(interval=None, percpu=True)
    finally:
        psutil.cpu_times = read


def disk_bytes(counters):
    return {"read": counters.read_bytes, "write": counters.write_bytes}


def snap(path):
    begin = time.time()
    times, percent = cpu()
    memory = psutil.virtual_memory()
    disk = psutil.disk_usage(path)
    total = psutil.disk_io_counters(nowrap=True)
    disks = psutil.disk_io_counters(perdisk=True, nowrap=True) or {}
    nics = psutil.net_io_counters(pernic=True) or {}
    return {
        "begin": begin,
        "end": time.time(),
        "cpu_fields": list(times[0]._fields),
        "cpu_times": [list(t) for t in times],
        "cpu_percent": percent,
        "memory": {"total": memory.total, "available": memory.available, "percent": memory.percent},
        "disk": {"total": disk.total, "used": disk.used, "free": disk.free, "percent": disk.percent},
        "disk_total": disk_bytes(total) if total else None,
        "disks": {name: disk_bytes(c) for name, c in disks.items()},
        "nics": {name: {"sent": c.bytes_sent, "recv": c.bytes_recv} for name, c in nics.items()},
    }


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "/"
    cpu()
    for line in iter(sys.stdin.readline, ""):
        if line.strip() != "snap":
            sys.exit("psutil_windows: unknown command %r" % line)
        print(json.dumps(snap(path)), flush=True)


if __name__ == "__main__":
    main()
