// Package comparer compares two sets of runs of the same job. For each metric it computes the two
// medians, their confidence intervals, the change, and whether the change is significant. The
// statistics are benchstat's: [golang.org/x/perf/benchmath] without assumptions about the
// distribution (medians, order statistics, the Mann-Whitney U-test).
//
// Everything here is a function of the reports. The package knows no commands and no files.
package comparer
