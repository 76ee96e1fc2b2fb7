// Package journal keeps the samples of an active run on disk, so that a crash loses at most a few seconds,
// and reads them back.
//
// A journal is a file of JSON lines in the directory of the future report. Its first line is the [Head]. The other
// lines are distinguished by their key:
//
//	{"snapshot":{…}}  everything so far: the ring, the summaries, the state
//	{"sample":[…],…}  one more sample, the marks before it, and the state if it has changed
//	{"signal":{…}}    a signal that the agent received, written immediately; also contained in the next state
//
// A reader starts from the last snapshot and adds the samples that follow. [Create] and [Journal]
// write, [Parse] reads, and a [Follower] follows a journal while the agent writes it.
package journal
