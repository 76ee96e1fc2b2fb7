// Package roster lets the perfagents of one launch on one node know of each other: who measures the host, who
// else is there, and who is the last one out.
//
// A roster is a file in memory that all processes of the user on the node see. Each agent appends one line when
// it joins and one when it leaves, and holds a lock for as long as it lives, so that the kernel tells when it
// was killed. Nobody waits for anybody else.
package roster
