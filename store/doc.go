// Package store keeps objects, which are bytes under names, in places that people already run: a directory, or the
// directory of a ProxyStore. It is the class Store of ProxyStore with the same operations and the same metrics, so that
// Python programs find what perfagent stores, and perfagent what they store.
//
// A store has an address and an object a name, and together they are a reference, STORE#NAME. The addresses:
//
//	/DIR, ./DIR, file:///DIR                   DIR/RUN-ID/node-N.json, the layout of --out
//	proxystore+file:///DIR[?serializer=02]     DIR/perfagent.RUN-ID.node-N.json and an empty ….json.ready beside it,
//	                                           as ProxyStore's FileConnector has it
//
// A name is RUN-ID/node-N, whatever the store. In a ProxyStore layout any key that Python made is a name, too.
//
// Objects are written once and read often. Nothing is ever deleted but by Evict. The package knows nothing of reports.
package store
