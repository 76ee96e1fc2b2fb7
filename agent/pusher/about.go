package pusher

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// The tags that stand on a run. The first two come through MLFLOW_RUN_CONTEXT on
// every run that the job makes itself.
const (
	TagRunID      = "perfagent.run_id"
	TagInvocation = "perfagent.invocation" // new for each "perfagent run"
	TagCreatedBy  = "perfagent.created_by" // on a run of our own
	TagCommand    = "perfagent.command"
	TagVersion    = "perfagent.version"
	TagExitCode   = "perfagent.exit_code"
	TagIncomplete = "perfagent.incomplete" // "true": the end of the run is not known
	TagDropped    = "perfagent.dropped_values"
	// TagJobRun, on a run of our own, names the job's own run, and TagMetricsRun the
	// other way round, where the job's turned up after ours was made.
	TagJobRun     = "perfagent.job_run_id"
	TagMetricsRun = "perfagent.metrics_run_id"
	// tagArtifact + a file's name + . + the invocation of its recording says where in the
	// run the file is.
	tagArtifact = "perfagent.artifact."
)

const createdBy = "perfagent"

// tagHost is the tag with a node's host name.
func tagHost(node string) string { return "perfagent.node." + node + ".host" }

// tagExit is the tag with a node's exit code.
func tagExit(node string) string { return "perfagent.node." + node + ".exit_code" }

// tagRecording is the tag by which a node's recording is known again.
func tagRecording(node string) string { return "perfagent.node." + node + ".recording" }

// maxTagValue is what every version of MLflow keeps whole of a tag.
const maxTagValue = 5000

// maxRunName is short enough for a table of runs.
const maxRunName = 80

// metrics are the documented metrics of a report: step = node, all with the time of
// the node's end. Values that are not finite are left out and counted.
func metrics(r *reporter.Report) (out []mlflow.Metric, dropped int) {
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		step, _ := strconv.ParseInt(name, 10, 64) // checked by the reader
		at := nodeEnd(r, n).UnixMilli()
		for _, key := range n.Metrics.Names() {
			v := n.Metrics[key]
			if v-v != 0 || mlflow.CheckKey(key) != nil {
				dropped++
				continue
			}
			out = append(out, mlflow.Metric{Key: key, Value: v, Timestamp: max(0, at), Step: step})
		}
	}
	return out, dropped
}

// nodeEnd is when a node's numbers were final.
func nodeEnd(r *reporter.Report, n *reporter.Node) time.Time {
	if n.Job != nil && !n.Job.End.IsZero() {
		return n.Job.End.Time
	}
	last := 0.0
	for _, ts := range n.Samples.Column(collector.Timestamp.Key()) {
		if ts > last && ts < 1<<40 {
			last = ts
		}
	}
	switch {
	case last > 0:
		return time.UnixMilli(int64(last * 1000))
	case !r.Run.End.IsZero():
		return r.Run.End.Time
	}
	return time.UnixMilli(0)
}

// tags are what is said of a report; those that MLflow would refuse come back as
// notes.
func tags(r *reporter.Report, dropped int) (out []mlflow.Tag, notes []string) {
	all := make(map[string]string)
	for key, value := range r.Run.Tags {
		if strings.HasPrefix(key, "perfagent.") {
			notes = append(notes, "tag left out: "+key+": names with perfagent. are ours")
			continue
		}
		all[key] = value
	}
	all[TagRunID] = r.Run.ID
	if len(r.Run.Command) > 0 {
		all[TagCommand] = CommandLine(r.Run.Command)
	}
	if r.Run.ExitCode != nil {
		all[TagExitCode] = strconv.Itoa(*r.Run.ExitCode)
	}
	if r.Run.Incomplete != "" {
		all[TagIncomplete] = "true"
	}
	if dropped > 0 {
		all[TagDropped] = strconv.Itoa(dropped)
	}
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n.Job != nil && n.Job.ExitCode != nil {
			all[tagExit(name)] = strconv.Itoa(*n.Job.ExitCode)
		}
		if n.Host != nil && n.Host.Hostname != "" {
			all[tagHost(name)] = n.Host.Hostname
		}
		if n.Agent != nil && all[TagVersion] == "" {
			all[TagVersion] = n.Agent.Version
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := mlflow.CheckKey(key); err != nil {
			notes = append(notes, "tag left out: "+err.Error())
			continue
		}
		out = append(out, mlflow.Tag{Key: key, Value: clip(all[key], maxTagValue)})
	}
	return out, notes
}

// runName names a run of our own after the command.
func runName(r *reporter.Report) string {
	if len(r.Run.Command) == 0 {
		return clip("perfagent "+r.Run.ID, maxRunName)
	}
	words := slices.Clone(r.Run.Command)
	words[0] = filepath.Base(words[0])
	return clip(CommandLine(words), maxRunName)
}

// CommandLine writes a command so that a shell reads it back.
func CommandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// quote quotes a word for a POSIX shell.
func quote(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// clip cuts a text to at most n bytes, at a rune, and makes it UTF-8.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// status is how a run of our own ended.
func status(r *reporter.Report) mlflow.Status {
	switch {
	case r.Run.Incomplete != "" || r.Run.Signal != "":
		return mlflow.Killed
	case r.Run.ExitCode != nil && *r.Run.ExitCode != 0:
		return mlflow.Failed
	}
	return mlflow.Finished
}
