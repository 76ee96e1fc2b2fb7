// Package job runs a command as if it were not observed, and reports exactly how it ended and which resources it used.
//
// # Two ways to run a job
//
// A library starts jobs as os/exec does. The package then installs no signal handlers, leaves the subreaper setting
// alone, and waits only for the job itself, so os/exec and other jobs can run at the same time:
//
//	j, err := job.Start(job.Command{Args: args}, nil)
//	status := j.Wait() // exit code, signal, rusage
//
// A program that is only a wrapper puts its whole process under the control of this package with [Catch] and passes the
// resulting [Signals] to [Start]:
//
//	if job.Headroom(limits) != nil { job.Exec(cmd, nil) } // no process left: become the job
//	signals := job.Catch()                                // from here on no signal is lost
//	defer signals.Stop()
//	j, err := job.Start(cmd, signals)
//	status := j.Wait()
//
// Signals are then relayed to the job, stops are mirrored, and the process reaps all its children, including orphans of
// the job. Except where noted, the sections below describe this mode.
//
// # Streams and environment
//
// In both modes, the job gets the caller's open files 0, 1 and 2 (no pipe, no pty) unless [Command] names others, and
// every other inherited descriptor that is not close-on-exec. It stays in the caller's process group, session and
// control group, and keeps its terminal. It outlives a caller that is killed, unless the launcher set a parent death
// signal for the caller (PR_SET_PDEATHSIG): the job then has the same parent death signal.
//
// # Signals
//
// Signals that kill(2) sends to this process reach the job's main process once: TERM, INT, HUP, QUIT, USR1, USR2, CONT,
// WINCH, TSTP, ALRM, ABRT and XCPU. Signals of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) go from the
// kernel to the whole foreground group, job included, and are not relayed. The si_code that the kernel passes to signal
// handlers distinguishes the two kinds; see hook_linux.go. The kernel sends SIGHUP only to the session leader, so it is
// relayed if this process is the leader.
//
// A signal that a process sends to the whole group, as kill(-pgid) and timeout(1) do, or to each process of a
// container, as a scheduler may, reaches the job twice: directly and through the relay. The kernel does not report
// whether a signal was sent to a process or to a group, and a duplicate is better than a lost signal. Under a launcher
// of parallel programs or a batch system, a witness avoids the duplicates: a small child in the job's process group
// that counts the signals it receives; see witness_linux.go. Signals that the job sends to its own group are not
// relayed to it.
//
// SIGPIPE and SIGXFSZ, which failing writes of this process may raise, are swallowed. The job ignores no signal when it
// starts, except those that were ignored when this process started (nohup, trap "" TERM, a background job of a script).
// The Go runtime replaces the dispositions of all signals except HUP, INT, TSTP, TTIN, TTOU and CONT, and opens
// /dev/null for missing standard descriptors, before any Go code runs. A binary linked with entry as its entry point
// (entry_linux.go; make build does so) records the original dispositions and the missing descriptors before that.
// [LacksEntryPoint] reports whether this binary has another entry point; its jobs then start with default actions and
// with /dev/null. entry also makes the runtime begin with one thread for goroutines, see [RemoveAddedGOMAXPROCS].
//
// # Stops
//
// Ctrl-Z stops the job. If the parent is a shell with job control, a job that stops also stops this process, by the
// same signal; otherwise Wait keeps waiting. An editor that tidies up the screen before it stops therefore keeps the
// terminal until it has stopped, and a job that ignores Ctrl-Z keeps running. Known limitation: if the job alone is
// continued while this process is stopped, this process stays stopped.
//
// # Accounting
//
// [Job.Wait] reaps every child of the process, so the process must not start other children while a job runs, except
// through [Job.StartHelper]. Orphans of the job become children of this process (PR_SET_CHILD_SUBREAPER; process 1
// needs no such call), and their usage is added to the job's. Therefore a daemon's parent is this process, not process
// 1, until the job's main process ends. A daemon adopted before then stays a child of this process until this process
// ends. Wait does not wait for daemons that outlive the main process.
//
// The orphans of a job started without Signals are not counted: process 1 or another subreaper adopts them, and
// [Status.Uncounted] is set.
//
// All of the above applies to Linux on amd64 and arm64. Elsewhere, package os starts the command and waits for it, and
// only the usage that package os reports is known.
package job
