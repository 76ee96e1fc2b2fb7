// Package comparer compares two sets of runs of the same job: for each metric of
// the table the two medians, their noise, the change, and whether there is one. The
// statistics are those of benchstat: golang.org/x/perf/benchmath, which assumes
// nothing of the distribution (medians, order statistics, the Mann-Whitney U-test).
//
// Everything here is a function of the reports; it knows no commands and no files.
package comparer
