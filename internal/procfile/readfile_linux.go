package procfile

// maxOnce bounds what ReadFile reads.
const maxOnce = 16 << 20

// ReadFile returns the contents of a kernel file that is read once. It costs a fifth of os.ReadFile, which asks for
// the file's size and offers the file to the network poller.
func ReadFile(path string) ([]byte, error) {
	b := Buffer{data: make([]byte, 2<<10)}
	return b.Read(path, maxOnce)
}
