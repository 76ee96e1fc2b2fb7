// Package exporter serves an active run over HTTP: as a page that updates itself, as a report, and as metrics for
// Prometheus.
//
// The sampling goroutine hands every sample to the [Exporter] and never waits for it. The Exporter replaces a small
// snapshot of the numbers each time. It copies the Recording only if a client has requested a page or a report since
// the last copy, and renders each copy once, regardless of the number of clients. The number of connections is limited,
// and slow clients do not delay others.
//
// The package depends on collector, reporter and plotter, but not on the command line.
package exporter
