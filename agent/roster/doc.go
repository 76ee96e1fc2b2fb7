// Package roster coordinates the perfagents (agents) of one launch on one node: which agent measures the host, whether
// there are other agents, and which agent leaves last.
//
// A roster is a file in memory that is visible to all processes of the user on the node. Each agent appends a line when
// it joins and another when it leaves. It holds a lock while it runs, which the kernel releases even if the agent is
// killed. No agent waits for another to end.
package roster
