package cgroup

// MemoryPath returns the path of the group to which memory is charged, as the kernel names it when
// it kills a process there (task_memcg of its log). "/" is the root, which has no limit, and "" a
// group that is not visible.
func (g *Group) MemoryPath() string {
	if g.memory == nil {
		return ""
	}
	return g.memory.names[0]
}
