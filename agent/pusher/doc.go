// Package pusher brings a Report's numbers into a run of an MLflow server: it
// finds the run, cuts the series into points, and sends what the server lacks.
//
// Three things make a push safe to repeat, to cut off and to do twice at once:
//
//   - What is sent is a function of the report alone (Windows, metrics, tags). The
//     same numbers get the same names, steps and time stamps each time, and the
//     server stores the same point once.
//   - The server is asked how far it got: of each node the points after its last
//     one are sent, by time. The points of a moment are in one request, or their
//     anchor, by which they are looked for, is in the last one.
//   - Runs are known again by their tags (TagInvocation), never by what a client
//     remembers.
//
// Live pushes the same points while a run goes on. Its queue is the Recording's
// own ring: an outage of any length takes no memory, and what the ring has thinned
// meanwhile is sent as thinly.
package pusher
