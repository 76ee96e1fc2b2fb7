package journal

// A Writer is the state of the agent that writes a journal, according to the journal's lock.
type Writer int

// Unknown means that the file system has no locks, or keeps them local to each machine.
const (
	Unknown Writer = iota
	Alive          // the agent holds the lock
	Gone           // the lock is free; an agent on another machine may not be visible
)

// Running reports whether an agent on this machine is still writing the journal.
func Running(journal string) bool { return WriterOf(journal) == Alive }
