"""Samples this host as perf.py does, through psutil, and prints what the sampling itself cost.

It is the other side of the cost comparison in docs/dev/performance.md. As in perf.py, a thread first sleeps for what the
CPU measurement leaves of the interval, measures the CPUs (a blocking call), then memory, the disk's space, the
disk counters (two calls, one for each direction) and the network counters, and keeps the sample in a list that is
thinned when it grows too long. The cost counts from the first sample on: imports and first-use caches are free.

Prints one JSON object: cpu_seconds (user + system), wall_seconds and samples of that steady state, and peak_rss_mb
(2^20 bytes) of the whole process.
"""

import argparse
import json
import resource
import sys
import threading
import time

import psutil

MIB = 1 << 20
MAX_LENGTH = 1000


def is_loopback(nic):
    nic = nic.lower()
    return nic == "lo" or "loopback" in nic


def disk_mb(direction):
    # perf.py dies on a host without disks; here it costs what a host with disks costs, less the parsing.
    counters = psutil.disk_io_counters()
    return getattr(counters, direction) / MIB if counters else 0.0


def take_sample(cpu_interval):
    cpus = psutil.cpu_percent(interval=cpu_interval, percpu=True)
    sample = {
        "cpu_pct_per_cpu_avg": sum(cpus) / len(cpus),
        "cpu_pct_per_cpu_min": min(cpus),
        "cpu_pct_per_cpu_max": max(cpus),
        "mem_percent": psutil.virtual_memory().percent,
        "disk_usage_percent": psutil.disk_usage("/").percent,
        "disk_io_read_mb": disk_mb("read_bytes"),
        "disk_io_write_mb": disk_mb("write_bytes"),
    }
    nics = psutil.net_io_counters(pernic=True)
    for key, field in (("sent", "bytes_sent"), ("recv", "bytes_recv")):
        lo = sum(getattr(c, field) for name, c in nics.items() if is_loopback(name))
        ext = sum(getattr(c, field) for name, c in nics.items() if not is_loopback(name))
        sample["net_io_lo_%s_mb" % key] = lo / MIB
        sample["net_io_ext_%s_mb" % key] = ext / MIB
    sample["timestamp"] = time.time()
    return sample


class Sampler(threading.Thread):
    def __init__(self, interval, cpu_interval):
        super().__init__()
        self.interval = interval
        self.cpu_interval = cpu_interval
        self.stop = False
        self.first = threading.Event()
        self.taken = 0
        self.kept = []
        self.every = 1

    def run(self):
        while not self.stop:
            pause = self.interval - (self.cpu_interval or 0)
            if pause >= 0:
                time.sleep(pause)
            self.keep(take_sample(self.cpu_interval))
            self.first.set()

    def keep(self, sample):
        self.taken += 1
        if self.taken % self.every:
            return
        self.kept.append(sample)
        if len(self.kept) > MAX_LENGTH:
            self.kept = self.kept[:MAX_LENGTH:2]
            self.every *= 2


def peak_rss_mb():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MIB if sys.platform == "darwin" else peak / 1024


def measure(interval, cpu_interval, seconds):
    sampler = Sampler(interval, cpu_interval)
    sampler.daemon = True
    sampler.start()
    if not sampler.first.wait(interval + 30):
        sys.exit("perfpy_way: no sample was taken")
    taken, cpu, wall = sampler.taken, time.process_time(), time.monotonic()
    time.sleep(seconds)
    sampler.stop = True
    sampler.join()
    return {
        "interval": interval,
        "cpu_interval": cpu_interval,
        "wall_seconds": time.monotonic() - wall,
        "samples": sampler.taken - taken,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_mb": peak_rss_mb(),
        "psutil": psutil.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description="what perf.py's way of sampling costs, in psutil")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between samples (default 1)")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of the steady state (default 30)")
    parser.add_argument(
        "--cpu-interval",
        type=float,
        help="seconds the CPU measurement blocks, 0 for not at all (default: the interval, as perf.py's defaults)",
    )
    args = parser.parse_args()
    if args.interval <= 0 or args.seconds <= 0 or (args.cpu_interval or 0) < 0:
        parser.error("times must be positive")
    cpu_interval = args.interval if args.cpu_interval is None else args.cpu_interval or None
    print(json.dumps(measure(args.interval, cpu_interval, args.seconds)))


if __name__ == "__main__":
    main()
