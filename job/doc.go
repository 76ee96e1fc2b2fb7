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
//	if job.Headroom(limits) != nil { job.Exec(cmd, nil) } // no room for two: be the job
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
// group, on its terminal. It outlives a caller that is killed, unless the caller's launcher tied the caller's life to
// the launcher's (PR_SET_PDEATHSIG), which is passed on.
//
// # Signals
//
// Signals that kill(2) sends to this process reach the job's main process once: TERM, INT, HUP, QUIT, USR1, USR2, CONT,
// WINCH, TSTP, ALRM, ABRT and XCPU. Signals of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) go from the
// kernel to the whole foreground group, job included, and are not sent a second time. The si_code that the kernel hands
// to signal handlers distinguishes the two; see hook_linux.go. A hang-up reaches only the leader of the session, so it
// is relayed if that is this process.
//
// A signal that a process sends to the whole group, as kill(-pgid) and timeout(1) do, or to each process of a
// container, as a scheduler may, reaches the job directly and again through the relay. The kernel does not report how a
// signal was addressed, and one too many is better than a lost one. Below a launcher of parallel programs or a batch
// system, a witness in the same place as the job shows which signals have reached the job; see witness_linux.go.
// Signals of the job to its own group are not relayed to it.
//
// SIGPIPE and SIGXFSZ, which failing writes of this process may raise, are swallowed. No signal is ignored while the
// job could inherit that, except those already ignored when the program started (nohup, trap "" TERM, a background job
// of a script): the job ignores them too. The Go runtime replaces the dispositions of all signals but HUP, INT, TSTP,
// TTIN, TTOU and CONT, and opens /dev/null for missing standard descriptors, before any Go code runs. A binary that is
// linked to begin at entry (entry_linux.go; make build does so) records both first. [LacksEntryPoint] reports whether
// this one is not; its jobs start with default actions and with /dev/null. entry also makes the runtime begin with one
// thread for goroutines, see [RemoveAddedGOMAXPROCS].
//
// # Stops
//
// Ctrl-Z stops the job. A job that stops also stops this process, by the same signal, if a shell with job control is
// there to notice; otherwise Wait keeps waiting. So an editor that tidies the screen before it stops keeps the terminal
// until it has done so, and a job that ignores Ctrl-Z goes on. Known limit: if the job is continued by its own process
// ID while this process is stopped, this process stays stopped.
//
// # Accounts
//
// [Job.Wait] reaps every child of the process, so the process must not start other children while a job runs, except
// through [Job.StartHelper]. Orphans of the job become children of this process (PR_SET_CHILD_SUBREAPER; process 1
// needs no such call), and their usage is added to the job's. Therefore a daemon's parent is this process, not process
// 1, until the job's main process ends and, for daemons adopted by then, until this process ends. Wait does not wait
// for daemons that outlive the main process.
//
// A job started without Signals has no account of its orphans: they go to process 1 or to a subreaper above, and
// [Status.Uncounted] is set.
//
// All of this holds on Linux on amd64 and arm64. Elsewhere package os starts the command and waits for it, and the
// account has only the values that package os reports.
package job
