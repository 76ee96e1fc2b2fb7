package main

import (
	"io"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// An insideProcess is a command line that runs concurrently in the test's process. Parallel tests may start one. Its
// working directory is the test's, so its reports need --out.
type insideProcess struct {
	stdin       io.WriteCloser // of the job
	lines, said <-chan string  // stdout and stderr
	ended       <-chan int     // the exit code
}

// startInside starts the command line in args.
func startInside(t testing.TB, args ...string) *insideProcess {
	t.Helper()
	in, stdin := clitest.Pipe(t)
	outR, outW := clitest.Pipe(t)
	errR, errW := clitest.Pipe(t)
	ended := make(chan int, 1)
	go func() {
		code := execute(args, streams{out: outW, err: errW, embedded: true, in: in})
		outW.Close()
		errW.Close()
		ended <- code
	}()

	return &insideProcess{stdin: stdin, lines: clitest.Scan(outR), said: clitest.Scan(errR), ended: ended}
}
