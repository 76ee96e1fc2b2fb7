// Package terminal draws a report with text: sparklines below a summary, and the screen of a run
// that is still going on.
//
// Pictures are made of the greatest value of each cell, so that no peak is lost, and nothing in a
// report can make a line hold control characters.
package terminal
