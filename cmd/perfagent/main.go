// Command perfagent reports the resources that a job used on this node. It wraps a command (perfagent run -- COMMAND)
// or records the host while jobs run (perfagent sidecar), and writes a report. See the README, or run "perfagent help".
package main

import (
	"io"
	"log"
	"os"
	"runtime"

	"github.com/perfagent/perfagent/job"
)

func main() {
	// The kernel prefers the first thread for delivering signals. A goroutine on that thread could block on a disk and
	// hold back a signal for the job, so the main goroutine is locked to the thread and stays idle.
	runtime.LockOSThread()
	log.SetOutput(io.Discard) // net/http would log unsolicited responses to the job's stderr
	job.CopyArgs()
	one, args := job.RemoveAddedGOMAXPROCS(), os.Args[1:]
	go func() {
		growStack()
		if one && worksOnReports(calledIn(args)) {
			runtime.SetDefaultGOMAXPROCS()
		}
		os.Exit(execute(args, streams{
			out: os.Stdout, err: &timeoutWriter{w: os.Stderr}, defaults: readDefaults(siteDefaults),
		}))
	}()
	select {}
}

// worksOnReports reports whether the given command processes reports and should use all CPUs. The other commands wait
// for a job, a clock or a user.
func worksOnReports(command string) bool {
	switch command {
	case "run", "attach", "sidecar", "op", "watch", "mark", "phase", "version":
		return false
	}
	return true
}

// growStack grows the goroutine's stack in one step. Otherwise the runtime doubles it from 2 KiB and copies it each
// time, which costs a short run several per cent.
//
//go:noinline
func growStack() {
	var room [48 << 10]byte
	runtime.KeepAlive(&room)
}
