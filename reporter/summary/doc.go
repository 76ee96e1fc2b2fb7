// Package summary writes a report for people: the lines on a terminal, Markdown for CI systems and
// issues, and the short texts that pages and screens show: headline, highlights, verdicts, advice.
//
// All text from a report is made printable before it is written.
package summary
