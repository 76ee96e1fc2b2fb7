"""Gets an object by ProxyStore's RedisConnector and puts another one: connector.py PORT KEY."""

import json
import sys

from proxystore.connectors.redis import RedisConnector, RedisKey
from proxystore.store import Store

store = Store("s", RedisConnector("127.0.0.1", int(sys.argv[1])))
got = store.get(RedisKey(sys.argv[2]))
store.connector._redis_client.set("key", b'BS\n{"b": 1}')
json.dump([got, "key"], sys.stdout)
