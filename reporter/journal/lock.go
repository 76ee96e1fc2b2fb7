package journal

// Writer is what the lock of a journal tells of the agent that writes it.
type Writer int

// Unknown is the file system without locks, or one that keeps them to each machine.
const (
	Unknown Writer = iota
	Alive          // the agent holds the lock
	Gone           // nobody holds it; an agent on another machine may not be seen
)

// Running tells whether a journal is still being written by an agent on this machine.
func Running(journal string) bool { return WriterOf(journal) == Alive }
