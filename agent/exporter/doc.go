// Package exporter shows a run to others while it goes on: over HTTP, as a page that
// grows, as a report, and as numbers for Prometheus.
//
// The [Exporter] is told of every sample by the sampling goroutine, which it never
// makes wait: a small snapshot of the numbers is replaced each time, and the
// Recording is copied only when somebody asked for a page or a report since. What is
// made of a copy is made once, however many ask. Connections are few, and none is
// waited for: not those that send slowly, nor those that do not read.
//
// It knows collector, reporter and plotter, and no command line.
package exporter
