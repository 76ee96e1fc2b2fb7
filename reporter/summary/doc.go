// Package summary writes a report for people: lines for a terminal, Markdown for CI systems and issues, and the short
// texts on pages and screens, such as headline, highlights, verdicts and advice.
//
// All text from a report is made printable before it is written.
package summary
