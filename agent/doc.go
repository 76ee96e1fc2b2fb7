// Package agent is perfagent as a library: it measures what a command, this very process or the
// host uses, and writes a report.
//
//	result, err := agent.Run(ctx, agent.Options{Args: []string{"python", "train.py"}})
//
// [Run] wraps a command as "perfagent run" does. [Start] and [Monitor.Stop] watch the calling
// process and its children from inside. [Sidecar] watches the host until its context is done.
//
// # What happens to the calling program
//
// Nothing is taken over from it: no signal is caught, no child is waited for but those that this
// package started (the command of Run, and nvidia-smi where there is one), GOMAXPROCS and the
// garbage collector stay as they are, and nothing is printed. The command line does take over its process, by Options.TakeOver. Without that, processes of the job
// that outlive their parents are adopted by somebody else; what they use is absent from the
// report, with the reason.
//
// Several runs may go on at once in one process, as long as none of them takes it over.
//
// # The life of a run
//
// A run claims the name of its report by creating a journal, takes the baseline, and starts the
// command. One goroutine samples. It hands each sample to the run's observers: the journal, the
// live push to MLflow, the live page, and the refresher of a sidecar's report. When the command
// has ended, the report is written, then its page, and what an MLflow server lacks is pushed.
package agent
