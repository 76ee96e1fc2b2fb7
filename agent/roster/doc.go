// Package roster makes the perfagents of one launch on one node aware of each other: which of them measures the host,
// whether there are others, and which one leaves last.
//
// A roster is a file in memory that all processes of the user on the node see. Each agent appends one line when it
// joins and one when it leaves, and holds a lock while it lives, so that the kernel releases the lock of a killed
// agent. No agent waits for the end of another.
package roster
