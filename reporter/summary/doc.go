// Package summary writes human-readable summaries of a report: lines for a terminal, Markdown for CI systems and
// issues, and the short texts on pages and screens, such as headlines, highlights, verdicts and advice.
//
// All text from a report is made printable before it is written.
package summary
