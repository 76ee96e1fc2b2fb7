// Package gather knows under which names the reports of a run are in a store: it puts the report of a node there, lists
// runs and nodes, and fetches them.
//
// The report of a node is RUN-ID/node-N, where N is the index of the node, or its host's name where no index is known.
// A further recording of the same node is node-N.2, node-N.3 and so on: nothing is ever overwritten.
package gather
