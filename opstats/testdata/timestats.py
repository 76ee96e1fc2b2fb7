"""Gives streams of times to ProxyStore's own TimeStats, and a stream of calls to its StoreMetrics where it has one.

Reads {"streams": [[[ms, unix seconds, size or null], ...], ...], "calls": [[name, key, ms, unix seconds], ...]} and
writes {"stats": the TimeStats of each stream, "sums": each sum of a stream and the next,
"keys": {key: {name: TimeStats}}, "total": the sums over keys in their order, "aggregate": what aggregate_times says}.
"""

import functools
import json
import operator
import sys
import types

try:
    from proxystore.store import metrics as module
    old = False
except ImportError:
    from proxystore.store import stats as module
    old = True

now = 0.0
if not old:
    module.time = types.SimpleNamespace(time=lambda: now)


def add(stats, ms, at, size):
    global now
    now = at
    if old:
        stats.add_time(ms, size)
    else:
        stats.add_time(ms)


def plain(stats):
    names = [*vars(stats)]
    return {name: getattr(stats, name) for name in names}


with open(sys.argv[1]) as file:
    given = json.load(file)
stats = []
for stream in given["streams"]:
    stats.append(module.TimeStats())
    for ms, at, size in stream:
        add(stats[-1], ms, at, size)
out = {
    "stats": [plain(s) for s in stats],
    "sums": [plain(a + b) for a, b in zip(stats, stats[1:])],
}

if not old:
    store = module.StoreMetrics()
    for name, key, ms, at in given["calls"]:
        now = at
        store.add_time(name, key, ms)
        store.add_counter(name, key, int(ms * 10))
        store.add_attribute(name, key, ms)
    keys = {key: store.get_metrics(key) for _, key, _, _ in given["calls"]}
    names = dict.fromkeys(call[0] for call in given["calls"])
    out["keys"] = {key: m.as_dict() for key, m in keys.items()}
    out["total"] = {
        name: plain(functools.reduce(operator.add, [m.times[name] for m in keys.values() if name in m.times]))
        for name in names
    }
    out["aggregate"] = {name: plain(s) for name, s in store.aggregate_times().items()}
    assert store.get_metrics("unheard of") is None

json.dump(out, sys.stdout)
