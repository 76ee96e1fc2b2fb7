// Package exporter serves a run over HTTP while it goes on: as a page that updates itself, as a
// report, and as metrics for Prometheus.
//
// The sampling goroutine hands every sample to the [Exporter] and never waits for it. The Exporter
// replaces a small snapshot of the numbers each time. It copies the Recording only if a client has
// asked for a page or a report since the last copy, and renders each copy once, however many clients
// ask. The number of connections is limited, and slow clients do not delay others.
//
// The package knows collector, reporter and plotter, and no command line.
package exporter
