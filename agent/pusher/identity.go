package pusher

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// An identity holds what the run of a recording is recognized by.
type identity struct {
	runID      string
	invocation string // of the wrapped command, or a hash of the recordings
	start, end time.Time
	nodes      []string          // as MLflow has them
	leads      bool              // it is up to this recording to create a run of our own
	recordings map[string]string // IDs by node
	perfpy     bool
}

// newIdentity returns the identity of a report. The recordings are named after base if it is not
// empty, and otherwise after the run ID.
func newIdentity(r *reporter.Report, d Destination, base string) identity {
	id := identity{
		runID:      r.Run.ID,
		invocation: d.Invocation,
		start:      r.Run.Start.Time,
		end:        r.Run.End.Time,
		leads:      len(r.Nodes) == 0,
		recordings: make(map[string]string),
	}
	for _, key := range r.NodeNames() {
		n := r.Nodes[key]
		name := nodeName(key, n)
		id.nodes = append(id.nodes, name)
		id.leads = id.leads || nodeStep(key, n) == 0
		id.recordings[name] = recordingID(cmp.Or(base, r.Run.ID), name, newNodeSeries(name, n).start)
		id.perfpy = id.perfpy || n.Origin == reporter.OriginPerfPy
	}
	if !plain(id.invocation) {
		id.invocation = id.hash()
	}
	return id
}

// recordingID identifies what a node recorded in a run from a time on.
func recordingID(runID, node string, start int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d", runID, node, start))
	return hex.EncodeToString(sum[:8])
}

// hash identifies all recordings of a report together.
func (id identity) hash() string {
	h := sha256.New()
	for _, name := range id.nodes {
		fmt.Fprintf(h, "%s ", id.recordings[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// NewInvocation returns the tag of one start of perfagent on a node. The runs that the job creates
// are recognized by it.
func NewInvocation(node string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:]) + "." + node
}

// SharedInvocation returns the tag of all ranks of a launch on a node, so that a run that the job of any of them
// creates is recognized by each. common is a text that only they have in common.
func SharedInvocation(common, node string) string {
	sum := sha256.Sum256([]byte(common))
	return hex.EncodeToString(sum[:8]) + "." + node
}

// relatives returns the filter for runs of other nodes, and of other reports of the same
// recordings. ok is false if there is none.
func (id identity) relatives() (filter string, ok bool) {
	if id.perfpy && len(id.nodes) > 0 { // perf.py's file has no run ID that others know
		return tagIs(tagRecording(id.nodes[0]), id.recordings[id.nodes[0]]), true
	}
	// A run of our own on another node may have begun a little earlier.
	since := id.start.Add(-time.Hour).UnixMilli()
	return fmt.Sprintf("%s and attributes.start_time >= %d", tagIs(TagRunID, id.runID), max(0, since)), plain(id.runID)
}

// recordedIn reports whether a run has one of these very recordings.
func (id identity) recordedIn(r mlflow.Run) bool {
	for _, name := range id.nodes {
		if tag := r.Tags[tagRecording(name)]; tag != "" && tag == id.recordings[name] {
			return true
		}
	}
	return false
}

// fits reports whether a run with our run ID belongs to the same run. That is so if it has our very
// recording, if another node's job created it since this run began and before it ended, or if we
// created it for other nodes at the same time. A run ID may be used twice, and by several commands
// of one node.
func (id identity) fits(r mlflow.Run) bool {
	switch {
	case id.recordedIn(r):
		return true
	case id.perfpy || id.collides(r) || r.StartTime.After(id.end):
		return false
	case r.Tags[tagCreatedBy] != createdBy:
		return !r.StartTime.Before(id.start.Truncate(time.Millisecond))
	}
	return r.EndTime.IsZero() || !r.EndTime.Before(id.start)
}

// collides reports whether a run belongs to another command on one of our nodes: it has that node's
// numbers, or was created by or for it.
func (id identity) collides(r mlflow.Run) bool {
	_, creator, _ := strings.Cut(r.Tags[TagInvocation], ".")
	for _, name := range id.nodes {
		if r.Tags[tagRecording(name)] != "" || creator == name {
			return true
		}
	}
	return false
}

// ownTags returns the tags that a run of our own has from its creation on.
func (id identity) ownTags() []mlflow.Tag {
	tags := []mlflow.Tag{
		{Key: tagCreatedBy, Value: createdBy},
		{Key: TagInvocation, Value: id.invocation},
		{Key: TagRunID, Value: id.runID},
	}
	for _, name := range id.nodes[:min(len(id.nodes), 50)] { // the others follow with the numbers
		tags = append(tags, mlflow.Tag{Key: tagRecording(name), Value: id.recordings[name]})
	}
	return tags
}

// tagIs returns the filter for a tag. The value must be plain.
func tagIs(key, value string) string { return "tags.`" + key + "` = '" + value + "'" }

// plain reports whether a filter may contain a value.
func plain(value string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return value != "" && strings.Trim(value, letters) == ""
}
