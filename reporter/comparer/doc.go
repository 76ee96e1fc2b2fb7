// Package comparer compares two sets of runs of the same job. For each metric, it computes the two medians, their
// confidence intervals, the change, and whether the change is significant. Like benchstat, it uses
// [golang.org/x/perf/benchmath] without assumptions about the distribution: medians, order statistics, and the
// Mann-Whitney U-test.
//
// The results depend only on the reports. The package is independent of commands and files.
package comparer
