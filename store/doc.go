// Package store keeps named objects (byte strings) in existing storage: a directory, a Redis server, an S3 bucket, or a
// directory or a Redis server with ProxyStore's layout. Its type Store provides the operations and the metrics of
// ProxyStore's class Store. Python programs can read perfagent's objects, and perfagent can read theirs.
//
// A store has an address, and each object has a name; together they form a reference, STORE#NAME. The addresses are:
//
//	/DIR, ./DIR, file:///DIR                   DIR/RUN-ID/node-N.json, the layout of --out
//	redis://[USER:PW@]HOST[:6379][/DB][?prefix=perfagent&ttl=168h], rediss:// for TLS
//	                                           the key PREFIX:RUN-ID:node-N, compressed with gzip
//	s3://BUCKET[/PREFIX][?endpoint=URL&region=us-east-1&style=path]
//	                                           the key PREFIX/RUN-ID/node-N.json, unchanged
//	proxystore+file:///DIR[?serializer=02]     DIR/perfagent.RUN-ID.node-N.json and an empty ….json.ready,
//	                                           as in ProxyStore's FileConnector
//	proxystore+redis://HOST[:6379][?serializer=02&ttl=168h]
//	                                           the key perfagent:RUN-ID:node-N, as in its RedisConnector
//
// A name is RUN-ID/node-N in every store. In a ProxyStore layout, any key made by Python is also a name.
//
// Objects are written once and read often. They are deleted by Evict and, on a Redis server, after the ttl.
//
// The report of a node is RUN-ID/node-N, where N is the index of the node or, if the index is unknown, the node's host
// name. Further recordings of the same node are node-N.2, node-N.3 and so on: no recording replaces another. PutReport
// and PartialReport put reports, Runs and Nodes list them, Await waits for them, and FetchRun and Fetch copy them to
// files.
package store
