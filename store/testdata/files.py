"""Reads and writes objects with ProxyStore's FileConnector: files.py DIR COMMAND [ARGUMENT...].

get KEY...: prints the objects as a JSON list, bytes as their text with "bytes " before it, and null for none.
put: stores a str, bytes and a dict, and prints their keys.
exists KEY...: prints what exists.
close: closes a store that clears its directory.
"""

import json
import sys

from proxystore.connectors.file import FileConnector, FileKey
from proxystore.store import Store

directory, command, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
store = Store("s", FileConnector(directory, clear=False))


def printable(value):
    return "bytes " + value.decode() if isinstance(value, bytes) else value


if command == "get":
    out = [printable(store.get(FileKey(k))) for k in arguments]
elif command == "exists":
    out = [store.exists(FileKey(k)) for k in arguments]
elif command == "put":
    out = [store.put(v).filename for v in ('{"a": "é"}', b'{"b": 1}', {"c": 1})]
else:
    out = None
    store.close(clear=True)
json.dump(out, sys.stdout)
