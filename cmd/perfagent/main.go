// Command perfagent says what a job really used on this node: it wraps a command
// (perfagent run -- CMD), or watches the host beside one (perfagent sidecar), and
// leaves a report. See the README, or perfagent help.
package main

import (
	"os"
	"runtime"
)

func main() {
	// The kernel hands a signal to the first thread if it can. No other goroutine may run
	// there: what hangs in a disk would keep the signal from the job.
	runtime.LockOSThread()
	os.Exit(execute(os.Args[1:], streams{out: os.Stdout, err: &patientWriter{w: os.Stderr}}))
}
