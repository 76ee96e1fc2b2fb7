package job

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// streams connects a job to the readers and writers of its Command.
type streams struct {
	files   [3]*os.File // the job's descriptors 0, 1 and 2; nil means this process's
	jobEnds []*os.File  // the job's ends of the pipes
	ownEnds []*os.File  // this process's ends

	copies []func() error // copy between the pipes and the Command's streams
	copied chan error     // their results
}

// openStreams makes the pipes for the streams of c that are not files.
func (c Command) openStreams() (*streams, error) {
	s := &streams{}
	err := s.connect(0, c.Stdin, func(w *os.File) error {
		_, err := io.Copy(w, c.Stdin)
		if brokenPipe(err) { // the job reads no further
			err = nil
		}
		return errors.Join(err, w.Close())
	})
	if err == nil {
		err = s.connect(1, c.Stdout, copyTo(c.Stdout))
	}
	switch {
	case err != nil:
	case c.Stderr != nil && equal(c.Stdout, c.Stderr):
		s.files[2] = s.files[1]
	default:
		err = s.connect(2, c.Stderr, copyTo(c.Stderr))
	}

	if err != nil {
		s.close()
		return nil, fmt.Errorf("%w: %w", ErrNoProcess, err)
	}
	return s, nil
}

// equal reports whether a and b are equal. It returns false for types that cannot be compared.
func equal(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

// connect sets the job's descriptor fd to stream: a reader, a writer, or nil for this process's descriptor. If stream
// is not a file, run copies between it and this process's end of a pipe.
func (s *streams) connect(fd int, stream any, run func(own *os.File) error) error {
	if file, ok := stream.(*os.File); ok || stream == nil {
		s.files[fd] = file
		return nil
	}

	jobs, own, err := os.Pipe()
	if err != nil {
		return err
	}
	if fd != 0 {
		jobs, own = own, jobs
	}
	s.files[fd], s.jobEnds, s.ownEnds = jobs, append(s.jobEnds, jobs), append(s.ownEnds, own)
	s.copies = append(s.copies, func() error { return run(own) })
	return nil
}

// copyTo returns a function that copies a pipe to the given writer.
func copyTo(to io.Writer) func(*os.File) error {
	return func(r *os.File) error {
		_, err := io.Copy(to, r)
		r.Close() // the job gets SIGPIPE if its output cannot be delivered
		return err
	}
}

// start starts the copying and closes this process's copies of the job's pipe ends.
func (s *streams) start() {
	closeAll(s.jobEnds)
	s.copied = make(chan error, len(s.copies))
	for _, run := range s.copies {
		go func() { s.copied <- run() }()
	}
}

// wait waits until all copying is done, and returns the first error.
func (s *streams) wait() error {
	var first error
	for range s.copies {
		if err := <-s.copied; first == nil {
			first = err
		}
	}
	return first
}

// close closes the pipes after a failed start.
func (s *streams) close() {
	closeAll(s.jobEnds)
	closeAll(s.ownEnds)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
