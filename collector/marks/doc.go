// Package marks reads and writes the file in which a job says what it does: a line for each moment
// that it marks, and for each phase that it begins or ends.
//
// The job appends lines to the file that the variable PERFAGENT_MARKS names:
//
//	{"mark":"epoch 3","ts":1795357692.08}   a moment
//	{"phase":"train","ts":1795357692.08}    a phase begins, and lasts until the next one
//	{"phase":null}                          no phase from here on
//	any other text                          a moment, too
//
// ts is the time in seconds since 1970, and may be left out. [Parse] reads a line, a [Follower] reads
// what is added to the file, within bounds, and [Append] adds a line.
package marks
