// Package job runs a command as if it were not observed, and reports exactly how it ended and what it used.
//
// # Two ways to run a job
//
// A library runs a job as os/exec would. It takes nothing over from the calling program: no signal handlers, no
// subreaper, and it waits only for its own children, so that os/exec and further jobs work at the same time:
//
//	j, err := job.Start(job.Command{Args: args}, nil)
//	status := j.Wait() // exit code, signal, rusage
//
// A program that is only a wrapper takes over its whole process with [Catch] and hands the resulting [Signals] to
// [Start]:
//
//	if job.Headroom(limits) != nil { job.Exec(cmd, nil) } // no process left: become the job
//	signals := job.Catch()                                // from here on no signal is lost
//	defer signals.Stop()
//	j, err := job.Start(cmd, signals)
//	status := j.Wait()
//
// Then signals are relayed to the job, stops are mirrored, and the process reaps all of its children, orphans of the
// job included. The sections below describe this way, except where noted.
//
// # Streams and environment
//
// Either way, the job gets the same open files 0, 1 and 2 (no pipe, no pty) unless [Command] names others, and every
// other inherited descriptor that is not close-on-exec. It stays in the caller's process group, session and control
// group, on its terminal. It outlives a caller that is killed. But if the launcher tied the caller's life to its life
// (PR_SET_PDEATHSIG), the job's life is tied in the same way.
//
// # Signals
//
// Signals that kill(2) sends to this process reach the job's main process once: TERM, INT, HUP, QUIT, USR1, USR2, CONT,
// WINCH, TSTP, ALRM, ABRT and XCPU. Signals of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) go from the
// kernel to the whole foreground group, job included, and are not sent a second time. The si_code that the kernel hands
// to signal handlers distinguishes the two; see hook_linux.go. The kernel sends SIGHUP only to the session leader, so
// it is relayed if this process is the leader.
//
// A signal that a process sends to the whole group, as kill(-pgid) and timeout(1) do, or to each process of a
// container, as a scheduler may, reaches the job directly and again through the relay. The kernel does not report
// whether a signal was sent to a process or to a group, and a duplicate is better than a lost signal. Under a launcher
// of parallel programs or a batch system, a witness avoids the duplicates: a small child in the job's process group
// that counts the signals it gets; see witness_linux.go. Signals that the job sends to its own group are not relayed to
// it.
//
// SIGPIPE and SIGXFSZ, which failing writes of this process may raise, are swallowed. This process ignores no signal
// that the job could inherit as ignored, except those already ignored when the program started (nohup, trap "" TERM, a
// background job of a script): the job ignores them too. The Go runtime replaces the dispositions of all signals but
// HUP, INT, TSTP, TTIN, TTOU and CONT, and opens /dev/null for missing standard descriptors, before any Go code runs. A
// binary linked with entry as its entry point (entry_linux.go; make build does so) records both before that.
// [LacksEntryPoint] reports whether this binary has another entry point; its jobs then start with default actions and
// with /dev/null. entry also makes the runtime begin with one thread for goroutines, see [RemoveAddedGOMAXPROCS].
//
// # Stops
//
// Ctrl-Z stops the job. If the parent is a shell with job control, a job that stops also stops this process, by the
// same signal; otherwise Wait keeps waiting. So an editor that tidies the screen before it stops keeps the terminal
// until it has stopped, and a job that ignores Ctrl-Z goes on. Known limit: if the job is continued by its own process
// ID while this process is stopped, this process stays stopped.
//
// # Accounting
//
// [Job.Wait] reaps every child of the process, so the process must not start other children while a job runs, except
// through [Job.StartHelper]. Orphans of the job become children of this process (PR_SET_CHILD_SUBREAPER; process 1
// needs no such call), and their usage is added to the job's. Therefore a daemon's parent is this process, not process
// 1, until the job's main process ends and, for daemons adopted by then, until this process ends. Wait does not wait
// for daemons that outlive the main process.
//
// The orphans of a job started without Signals are not counted: process 1 or a subreaper above adopts them, and
// [Status.Uncounted] is set.
//
// All of this holds for Linux on amd64 and arm64. Elsewhere package os starts the command and waits for it, and only
// the usage that package os reports is known.
package job
