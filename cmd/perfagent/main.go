// Command perfagent reports what a job really used on this node. It wraps a command (perfagent
// run -- CMD) or records the host beside one (perfagent sidecar), and writes a report. See the
// README, or run "perfagent help".
package main

import (
	"io"
	"log"
	"os"
	"runtime"
)

func main() {
	// The kernel delivers a signal to the first thread if it can. No other goroutine may run there:
	// one that hangs on a disk would keep the signal from the job. So this one stays there and does
	// nothing.
	runtime.LockOSThread()
	log.SetOutput(io.Discard) // net/http prints what servers send unasked, and stderr is the job's
	go func() {
		os.Exit(execute(os.Args[1:], streams{
			out: os.Stdout, err: &patientWriter{w: os.Stderr}, defaults: readDefaults(siteDefaults),
		}))
	}()
	select {}
}
