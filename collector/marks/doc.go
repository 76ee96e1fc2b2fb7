// Package marks reads and writes the file of a job's marks. The file has a line for each moment that the job marks, and
// for each phase that it begins or ends.
//
// The job appends lines to the file named by the variable PERFAGENT_MARKS:
//
//	{"mark":"epoch 3","ts":1795357692.08}   a moment
//	{"phase":"train","ts":1795357692.08}    a phase begins, and lasts until the next one
//	{"phase":null}                          the phase ends
//	any other text                          a moment
//
// The optional ts is the time in seconds since 1970. [Parse] parses a line, a [Follower] reads new lines of the file up
// to a limit, and [Append] adds a line.
package marks
