"""Does a list of operations on ProxyStore's Store with a LocalConnector, and prints what its metrics have.

Reads [{"op": put|get|exists|evict|proxy, "key": name, "value": text}, ...] and writes {"results": what each returned,
"keys": {name: {"counters", "attributes", "times": {operation: count}}}}.
"""

import json
import sys

from proxystore.connectors.local import LocalConnector, LocalKey
from proxystore.store import Store
from proxystore.store.utils import get_key

store = Store("s", LocalConnector(), metrics=True, register=True)
keys, results = {}, []


def key(name):
    return keys.setdefault(name, LocalKey(id=name))


def proxy(call):
    made = store.proxy(call["value"], populate_target=False)
    keys[call["key"]] = get_key(made)
    return str(made)


def put(call):
    keys[call["key"]] = store.put(call["value"])


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
for name, k in keys.items():
    metrics = store.metrics.get_metrics(k)
    if metrics is not None:
        times = {operation: stats.count for operation, stats in metrics.times.items()}
        out[name] = {"counters": metrics.counters, "attributes": metrics.attributes, "times": times}
json.dump({"results": results, "keys": out}, sys.stdout)
