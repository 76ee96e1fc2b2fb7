// Package pusher sends the numbers of a Report to a run of an MLflow server. It finds the run, converts the time series
// to points, and sends the missing ones.
//
// A push can be repeated, interrupted, or run twice at once, for three reasons:
//
//   - The data (windows, metrics, tags) depends on the report alone. The same numbers have the same names, steps and
//     timestamps in each push, and the server stores an identical point once.
//   - Each push asks the server which points it has, and sends those after the last point of each node, by time. The
//     points of a window are usually sent in one request. If they are split, the anchor, the point by which remote.go
//     finds the window, is sent last.
//   - Tags on the server identify runs (TagInvocation). No client state is needed.
//
// Live pushes the same points during a run. Its queue is the Recording's ring, so an outage of any length takes no
// memory. Samples that the ring has merged meanwhile are sent merged.
//
// points.go makes the points of the series in series.go, metrics.go the documented metrics, and tags.go the tags.
// group.go splits a report by destination run. search.go finds a run, plan.go compares it with the report, and
// remote.go finds out which points it has. send.go and end.go send the rest.
package pusher
