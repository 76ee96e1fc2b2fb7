// Package terminal draws a report as text: sparklines below a summary, and the screen of a run in progress.
//
// Each cell of a sparkline shows the greatest value of its interval, so no peak is lost. Text from a report cannot put
// control characters into a line.
package terminal
