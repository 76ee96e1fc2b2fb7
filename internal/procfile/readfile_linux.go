package procfile

// maxFileSize is the largest file that ReadFile reads, in bytes.
const maxFileSize = 16 << 20

// ReadFile reads the kernel file at path, for a caller without a Buffer. It costs a fifth of os.ReadFile, which queries
// the file's size and registers the file with the network poller.
func ReadFile(path string) ([]byte, error) {
	b := Buffer{data: make([]byte, 2<<10)}
	return b.Read(path, maxFileSize)
}
