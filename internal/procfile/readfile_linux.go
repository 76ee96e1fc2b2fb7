package procfile

// maxFileSize bounds what ReadFile reads.
const maxFileSize = 16 << 20

// ReadFile reads a kernel file that is read once. It costs a fifth of os.ReadFile, which queries the file's size and
// registers the file with the network poller.
func ReadFile(path string) ([]byte, error) {
	b := Buffer{data: make([]byte, 2<<10)}
	return b.Read(path, maxFileSize)
}
