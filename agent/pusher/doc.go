// Package pusher brings a Report's numbers into a run of an MLflow server. It finds the run, cuts
// the time series into points, and sends what the server lacks.
//
// Three things make it safe to repeat a push, to cut it off, and to do it twice at once:
//
//   - What is sent is a function of the report alone (windows, metrics, tags). The same numbers get
//     the same names, steps and timestamps each time, and the server stores the same point once.
//   - The server is asked how far it got. Of each node the points after its last one are sent, by
//     time. The points of a window are in one request, or their anchor, by which they are looked
//     for, is in the last one.
//   - Runs are recognized by their tags (TagInvocation), never by what a client remembers.
//
// Live pushes the same points while a run goes on. Its queue is the Recording's own ring: an outage
// of any length takes no memory. Samples that the ring has merged by then are sent merged.
//
// Where to look: points.go makes the points of the time series that series.go names, metrics.go the
// documented metrics, and tags.go the tags. group.go splits a report by the runs that its nodes go
// to. search.go finds such a run, plan.go compares it with a report, and remote.go knows what it
// already has. send.go and end.go send the rest.
package pusher
