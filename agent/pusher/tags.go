package pusher

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Tags of a run. MLFLOW_RUN_CONTEXT sets the first two on every run that the job creates.
const (
	TagRunID      = "perfagent.run_id"
	TagInvocation = "perfagent.invocation" // new for each "perfagent run"
	TagExitCode   = "perfagent.exit_code"

	tagCreatedBy  = "perfagent.created_by" // on a run that perfagent created
	tagCommand    = "perfagent.command"
	tagVersion    = "perfagent.version"
	tagIncomplete = "perfagent.incomplete" // "true": the end of the run is unknown
	tagDropped    = "perfagent.dropped_values"

	// tagNote is MLflow's description of a run: how the job ended and what to do.
	tagNote = "mlflow.note.content"

	// If the job's run appears after ours was created, tagJobRun on our run has the ID of the job's run, and
	// tagMetricsRun on the job's run has the ID of our run.
	tagJobRun     = "perfagent.job_run_id"
	tagMetricsRun = "perfagent.metrics_run_id"

	// tagArtifact is the prefix of the key of the tag with a file's path in the run. The file's name, a dot and the
	// invocation of its recording follow.
	tagArtifact = "perfagent.artifact."

	// ownPrefix is the prefix of all our tags, and nodePrefix of the tags about a node. exitSuffix is the suffix of the
	// tag with a node's exit code.
	ownPrefix  = "perfagent."
	nodePrefix = "perfagent.node."
	exitSuffix = ".exit_code"
)

// createdBy is the value of tagCreatedBy.
const createdBy = "perfagent"

// tagHost returns the key of the tag with a node's host name.
func tagHost(node string) string { return nodePrefix + node + ".host" }

// tagExit returns the key of the tag with a node's exit code.
func tagExit(node string) string { return nodePrefix + node + exitSuffix }

// tagRecording returns the key of the tag by which a node's recording is recognized.
func tagRecording(node string) string { return nodePrefix + node + ".recording" }

const (
	maxTagValue = 5000 // bytes of a tag value that every version of MLflow stores
	maxRunName  = 80   // bytes, so that the name fits in a table of runs
)

// tags returns the tags of r, by key. A tag that MLflow would refuse becomes a note.
func tags(r *reporter.Report, dropped int) (all map[string]string, notes []string) {
	all = ownTags(r, dropped)
	for key, value := range r.Run.Tags {
		if strings.HasPrefix(key, ownPrefix) {
			notes = append(notes, "tag left out: "+key+": names that begin with perfagent. are reserved")
			continue
		}
		all[key] = value
	}

	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := mlflow.CheckKey(key); err != nil {
			notes = append(notes, "tag left out: "+err.Error())
			delete(all, key)
			continue
		}
		all[key] = clip(all[key], maxTagValue)
	}
	return all, notes
}

// ownTags returns perfagent's tags for r, without the user's.
func ownTags(r *reporter.Report, dropped int) map[string]string {
	all := map[string]string{TagRunID: r.Run.ID}
	if r.Run.ExitCode != nil || r.Run.Verdict != nil { // the run has ended
		c := summary.Conclude(r)
		all[tagNote] = strings.TrimSpace(c.Cause + " " + c.Action)
	}
	if len(r.Run.Command) > 0 {
		all[tagCommand] = ShellCommand(r.Run.Command)
	}
	if r.Run.ExitCode != nil {
		all[TagExitCode] = strconv.Itoa(*r.Run.ExitCode)
	}
	if r.Run.Incomplete != "" {
		all[tagIncomplete] = "true"
	}
	if dropped > 0 {
		all[tagDropped] = strconv.Itoa(dropped)
	}

	for _, key := range r.NodeNames() {
		n := r.Nodes[key]
		name := nodeName(key, n)
		if n.Job != nil && n.Job.ExitCode != nil {
			all[tagExit(name)] = strconv.Itoa(*n.Job.ExitCode)
		}
		if n.Host != nil && n.Host.Hostname != "" {
			all[tagHost(name)] = n.Host.Hostname
		}
		if n.Agent != nil && all[tagVersion] == "" {
			all[tagVersion] = n.Agent.Version
		}
	}
	return all
}

// runName returns the name of a run that perfagent creates: its command.
func runName(r *reporter.Report) string {
	if len(r.Run.Command) == 0 {
		return clip("perfagent "+r.Run.ID, maxRunName)
	}
	words := slices.Clone(r.Run.Command)
	words[0] = filepath.Base(words[0])
	return clip(ShellCommand(words), maxRunName)
}

// ShellCommand returns the command in words, quoted for a POSIX shell.
func ShellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = text.ShellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// clip shortens s to at most n bytes, never splits a character, and makes the result valid UTF-8.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return text.Prefix(s, n-len("…")) + "…"
}

// withoutIndex is the NodeFrom of a node without an index.
const withoutIndex = "none"

// nodeName returns the name of a node in MLflow: its index or, if the launcher set none, the name of its host. Without
// an index, the node's key in a report depends on the report's other nodes.
func nodeName(key string, n *reporter.Node) string { return NodeName(key, n.Identity, hostOf(n)) }

// NodeName returns the name in MLflow of the node that a process with the given identity runs on. key is the node's key
// in reports.
func NodeName(key string, id *reporter.Identity, host string) string {
	if isUnindexed(id) && isFilterSafe(host) {
		return host
	}
	return key
}

// isUnindexed reports whether a launcher set a rank but not the index of the node. Without a launcher, the index is 0.
func isUnindexed(id *reporter.Identity) bool {
	return id != nil && id.NodeFrom == withoutIndex && id.WorldSize > 0
}

// hostOf returns the name of a node's host, or "" if it is unknown.
func hostOf(n *reporter.Node) string { return cmp.Or(n.Host, &reporter.Host{}).Hostname }

// nodeStep returns the step of a node's metrics: its index, or the lowest rank on it.
func nodeStep(key string, n *reporter.Node) int64 {
	index, _ := strconv.ParseInt(key, 10, 64) // checked by the reader
	if nodeName(key, n) == key {
		return index
	}

	ranks := n.RankList()
	switch {
	case len(ranks) > 0:
		return int64(ranks[0].Rank)
	case n.Identity.Rank != nil:
		return int64(*n.Identity.Rank)
	}
	return index
}

// createsRun reports whether a process creates the MLflow run of its launch, because it is on node 0 or, if nodes have
// no index, on the node of rank 0. If the launcher fills one node after the other, ranks and local ranks are the same
// on that node.
func createsRun(node int, id *reporter.Identity) bool {
	if !isUnindexed(id) || id.Rank == nil {
		return node == 0
	}
	return *id.Rank == 0 || id.LocalRank != nil && *id.LocalRank == *id.Rank
}
