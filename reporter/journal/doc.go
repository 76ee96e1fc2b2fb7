// Package journal keeps the samples of a run on disk while the run goes on, so that a crash loses
// next to nothing, and reads them back.
//
// A journal is a file of JSON lines beside the report to come. Its first line is the [Head]; the
// others are told apart by their key:
//
//	{"snapshot":{…}}  everything up to then: the ring, the summaries, the state
//	{"sample":[…],…}  one more sample, and the state if it has changed
//	{"signal":{…}}    a signal that the agent was sent, at once; the next state has it too
//
// A reader starts from the last snapshot and adds the samples that follow. [Create] and the
// [Journal] write, [Parse] reads, and a [Follower] reads along while the agent writes.
package journal
