"""Runs a list of operations on ProxyStore's Store with a LocalConnector, and prints the results and the metrics.

Reads [{"op": put|get|exists|evict|proxy, "key": name, "value": text}, ...] and writes {"results": [...], "keys": {name:
{"counters", "attributes", "times": {operation: count}}}}, with one result for each operation.
"""

import collections
import json
import sys

from proxystore.connectors.local import LocalConnector, LocalKey
from proxystore.store import Store
from proxystore.store.utils import get_key

store = Store("s", LocalConnector(), metrics=True, register=True)
keys, results = {}, []  # keys: for each name its keys; nothing was put under the first


def key(name):
    return keys.setdefault(name, [LocalKey(id=name)])[-1]


def became(name, k):
    key(name)
    keys[name].append(k)


def proxy(call):
    made = store.proxy(call["value"], populate_target=False)
    became(call["key"], get_key(made))
    return str(made)


def put(call):
    became(call["key"], store.put(call["value"]))


operations = {
    "put": put,
    "proxy": proxy,
    "get": lambda call: store.get(key(call["key"])),
    "exists": lambda call: store.exists(key(call["key"])),
    "evict": lambda call: store.evict(key(call["key"])),
}
with open(sys.argv[1]) as calls:
    for call in json.load(calls):
        results.append(operations[call["op"]](call))

out = {}
for name, of in keys.items():
    counters, attributes, times = collections.Counter(), {}, collections.Counter()
    for metrics in filter(None, map(store.metrics.get_metrics, of)):
        counters.update(metrics.counters)
        attributes.update(metrics.attributes)
        times.update({operation: stats.count for operation, stats in metrics.times.items()})
    out[name] = {"counters": counters, "attributes": attributes, "times": times}
json.dump({"results": results, "keys": out}, sys.stdout)
