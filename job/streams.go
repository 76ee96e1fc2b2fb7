package job

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// streams connects a job with the readers and writers of its Command.
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
	err := s.input(c.Stdin)
	if err == nil {
		s.files[1], err = s.output(c.Stdout)
	}
	switch {
	case err != nil:
	case c.Stderr != nil && equal(c.Stdout, c.Stderr):
		s.files[2] = s.files[1]
	default:
		s.files[2], err = s.output(c.Stderr)
	}

	if err != nil {
		s.close()
		return nil, fmt.Errorf("%w: %w", ErrNoProcess, err)
	}
	return s, nil
}

// equal reports whether a and b are equal. Writers of types that cannot be compared are not.
func equal(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

// input sets the job's descriptor 0, which reads from the given reader.
func (s *streams) input(from io.Reader) error {
	if from == nil {
		return nil
	}
	if file, ok := from.(*os.File); ok {
		s.files[0] = file
		return nil
	}

	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.files[0], s.jobEnds, s.ownEnds = r, append(s.jobEnds, r), append(s.ownEnds, w)
	s.copies = append(s.copies, func() error {
		_, err := io.Copy(w, from)
		if brokenPipe(err) { // the job reads no further
			err = nil
		}
		return errors.Join(err, w.Close())
	})
	return nil
}

// output returns the job's descriptor for output to the given writer.
func (s *streams) output(to io.Writer) (*os.File, error) {
	if to == nil {
		return nil, nil
	}
	if file, ok := to.(*os.File); ok {
		return file, nil
	}

	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.jobEnds, s.ownEnds = append(s.jobEnds, w), append(s.ownEnds, r)
	s.copies = append(s.copies, func() error {
		_, err := io.Copy(to, r)
		r.Close() // the job gets SIGPIPE if its output cannot be delivered
		return err
	})
	return w, nil
}

// start begins to copy. It closes this process's copies of the job's ends of the pipes.
func (s *streams) start() {
	closeAll(s.jobEnds)
	s.copied = make(chan error, len(s.copies))
	for _, run := range s.copies {
		go func() { s.copied <- run() }()
	}
}

// wait waits until everything is copied, and returns the first error.
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
