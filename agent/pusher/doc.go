// Package pusher sends the numbers of a Report to a run of an MLflow server. It finds the run, converts the time series
// to points, and sends the missing points.
//
// A push can be repeated, interrupted, or run by two processes at the same time, for three reasons:
//
//   - The data (windows, metrics, tags) depends only on the report. The same numbers have the same names, steps and
//     timestamps in each push, and the server stores an identical point once.
//   - Each push asks the server which points it has, and sends only points later than the last point of each node. The
//     points of a window are usually sent in one request. If a window is split, the anchor, the point by which
//     remote.go finds the window, is sent last.
//   - Tags on the server identify runs (TagInvocation). No client state is needed.
//
// Live pushes the same points during a run. Its queue is the Recording's ring, so even a long outage takes no
// additional memory. Samples that the ring has merged in the meantime are sent merged.
//
// points.go defines the series and makes their points, metrics.go makes the documented metrics, and tags.go the tags.
// group.go splits a report by destination run. search.go finds a run, plan.go compares it with the report, and
// remote.go determines which points it has. send.go and end.go send the rest.
package pusher
