// Package agent is perfagent as a library. It measures the resources that a command, this process or the host uses, and
// writes a report.
//
//	result, err := agent.Run(ctx, agent.Options{Args: []string{"python", "train.py"}})
//
// [Run] wraps a command as "perfagent run" does. [Start] and [Monitor.Stop] watch the calling process and its children
// from inside. [Sidecar] watches the host until its context is done.
//
// # Effects on the calling program
//
// By default, the package leaves the calling program's process-wide state alone. It catches no signals, waits only for
// children that it started (the command of Run, and nvidia-smi if there is one), does not tune GOMAXPROCS or the
// garbage collector, and prints nothing. The perfagent command takes over its process by setting Options.TakeOver.
// Without TakeOver, processes of the job that outlive their parents are adopted by init or another reaper. The report
// lacks their usage, and gives the reason.
//
// Several runs may be active in one process, as long as none of them takes over the process.
//
// # Lifecycle of a run
//
// A run claims the name of its report by creating a journal, takes the baseline, and starts the command. One goroutine
// samples. It passes each sample to the run's observers: the journal, the live push to MLflow, the live page, and the
// refresher of a sidecar's report. When the command has ended, the run writes the report and its page, and pushes the
// data that the MLflow server does not have.
package agent
