// Command perfagent reports what a job really used on this node. It wraps a command (perfagent
// run -- CMD) or records the host beside one (perfagent sidecar), and writes a report. See the
// README, or run "perfagent help".
package main

import (
	"io"
	"log"
	"os"
	"runtime"

	"github.com/perfagent/perfagent/job"
)

func main() {
	// The kernel delivers a signal to the first thread if it can. No other goroutine may run there:
	// one that hangs on a disk would keep the signal from the job. So this one stays there and does
	// nothing.
	runtime.LockOSThread()
	log.SetOutput(io.Discard) // net/http prints what servers send unasked, and stderr is the job's
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

// worksOnReports reports whether a command makes something of reports, for which it may use all CPUs. The others wait
// for a job, a clock or a user.
func worksOnReports(command string) bool {
	switch command {
	case "run", "attach", "sidecar", "record", "watch", "mark", "phase", "version":
		return false
	}
	return true
}

// growStack makes room on a goroutine's stack at once. It would be doubled from 2 KiB up, and copied each time, which
// costs a short run several per cent.
//
//go:noinline
func growStack() {
	var room [48 << 10]byte
	runtime.KeepAlive(&room)
}
