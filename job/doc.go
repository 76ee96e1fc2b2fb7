// Package job runs a command as if nothing were watching it, and reports exactly
// how it ended and what it used.
//
// # Two ways to run a job
//
// A library runs a job as os/exec would. It takes nothing over from the program
// that calls it: no signal handlers, no subreaper, and it waits for no child but
// its own, so that os/exec and further jobs work at the same time:
//
//	j, err := job.Start(job.Command{Args: args}, nil)
//	status := j.Wait() // exit code, signal, rusage
//
// A program that is only a wrapper takes over its whole process with [Catch] and
// hands the resulting [Signals] to [Start]:
//
//	if job.Headroom(limits) != nil { job.Exec(cmd, nil) } // no room for two: be the job
//	signals := job.Catch()                                // from here on no signal is lost
//	defer signals.Stop()
//	j, err := job.Start(cmd, signals)
//	status := j.Wait()
//
// Then signals are relayed to the job, stops are mirrored, and the process reaps
// all of its children, orphans of the job included. The rest of this text is
// about that way, except where it says otherwise.
//
// # Streams and surroundings
//
// Either way, the job gets the very same open files 0, 1 and 2 (no pipe, no pty)
// unless [Command] names others, every other inherited descriptor that is not
// close-on-exec, and stays in the caller's process group, session and control
// group, on its terminal. It outlives a caller that is killed: nothing ties its
// life to the caller's, unless the caller's own launcher tied the caller's life to its
// own (PR_SET_PDEATHSIG), which is passed on.
//
// # Signals
//
// What kill(2) sends to this process reaches the job's main process once: TERM,
// INT, HUP, QUIT, USR1, USR2, CONT, WINCH, TSTP, ALRM, ABRT and XCPU. What the
// terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) goes from the kernel
// to the whole foreground group, job included, and is not sent a second time. The
// si_code that the kernel hands to signal handlers distinguishes the two; see
// hook_linux.go. A hang-up reaches only the leader of the session, so it is
// relayed if that is this process.
//
// A signal that a process sends to the whole group, as kill(-pgid) and timeout(1)
// do, or to each process of a container, as a scheduler may, reaches the job
// directly and again through the relay. The kernel does not say how a signal was
// addressed, and one too many is better than none at all. Below a launcher of parallel
// programs or a batch system a witness, which is where the job is, shows what has
// reached the job; see witness_linux.go. What the job sends to its own group is not
// relayed to it.
//
// SIGPIPE and SIGXFSZ, which failing writes of this process may raise, are
// swallowed. Nothing is ever ignored while the job could inherit that, except
// what was already ignored when the program started (nohup, trap "" TERM, a
// background job of a script): the job ignores it too. The Go runtime replaces
// the dispositions of all signals but HUP, INT, TSTP, TTIN, TTOU and CONT, and
// opens /dev/null for missing standard descriptors, before any Go code runs. A
// binary that is linked to begin at entry (entry_linux.go; make build does so)
// notes both first. [LacksEntryPoint] reports whether this one is not; its jobs start
// with default actions and with /dev/null. entry also has the runtime begin with one
// thread for goroutines, see [RemoveAddedGOMAXPROCS].
//
// # Stops
//
// Ctrl-Z stops the job, and a job that stops also stops this process, by the same
// signal, if a shell with job control is there to notice; otherwise the job is
// simply waited for. So an editor that tidies the screen before it stops keeps
// the terminal until it has done so, and a job that ignores Ctrl-Z goes on. Known
// limit: a job that is continued by its own process ID while this process is
// stopped leaves it stopped.
//
// # Accounts
//
// [Job.Wait] reaps every child of the process, so nothing else in it may start
// children while a job runs, except through [Job.StartHelper]. Orphans of the job
// become children of this process (PR_SET_CHILD_SUBREAPER; process 1 needs no such
// call), and their usage is added to the job's. Therefore a daemon's parent is
// this process, not process 1, until the job's main process ends and, for daemons
// adopted by then, until this process ends. Daemons that outlive the main process
// are not waited for.
//
// A job started without Signals has no account of its orphans: they go to process
// 1 or to a subreaper above, and [Status.Uncounted] says so.
//
// All of this holds on Linux on amd64 and arm64. Elsewhere package os starts the command and waits for
// it, and the account has only what package os reports.
package job
