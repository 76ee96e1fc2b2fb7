// Package roster makes the perfagents of one launch on one node aware of each other: who measures the host, who else is
// there, and who is the last to leave.
//
// A roster is a file in memory that all processes of the user on the node see. Each agent appends one line when it
// joins and one when it leaves, and holds a lock while it lives, so that the kernel releases the lock of a killed
// agent. No agent waits for the end of another.
package roster
