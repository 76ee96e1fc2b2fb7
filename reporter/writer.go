package reporter

// Writer is what the lock of a journal tells of the agent that writes it.
type Writer int

// Unknown is the file system without locks, or one that keeps them to each machine.
const (
	WriterUnknown Writer = iota
	WriterAlive          // the agent holds the lock
	WriterGone           // nobody holds it; an agent on another machine may not be seen
)

// Running tells whether a journal is still being written by an agent on this machine.
func Running(journal string) bool { return Writing(journal) == WriterAlive }
