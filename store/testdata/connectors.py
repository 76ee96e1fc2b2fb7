"""Reads and writes objects with ProxyStore's connectors: connectors.py DIR|PORT COMMAND [ARGUMENT...].

DIR is the directory of a FileConnector, PORT the port of a Redis server on this machine.

get KEY...: prints the objects as a JSON list: bytes as text with the prefix "bytes ", and null for a missing object.
put: stores a str, bytes and a dict, and prints their keys.
exists KEY...: prints for each key whether the object exists.
close: closes the store and clears its directory.
"""

import json
import sys

from proxystore.store import Store

place, command, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
if place.isdigit():
    from proxystore.connectors.redis import RedisConnector, RedisKey as Key

    store = Store("s", RedisConnector("127.0.0.1", int(place)))
else:
    from proxystore.connectors.file import FileConnector, FileKey as Key

    store = Store("s", FileConnector(place, clear=False))


def printable(value):
    return "bytes " + value.decode() if isinstance(value, bytes) else value


if command == "get":
    out = [printable(store.get(Key(k))) for k in arguments]
elif command == "exists":
    out = [store.exists(Key(k)) for k in arguments]
elif command == "put":
    out = [store.put(v)[0] for v in ('{"a": "é"}', b'{"b": 1}', {"c": 1})]
else:
    out = None
    store.close(clear=True)
json.dump(out, sys.stdout)
