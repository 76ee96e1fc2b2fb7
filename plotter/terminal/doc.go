// Package terminal draws a report as text: sparklines below a summary, and the screen of a run in progress.
//
// Sparklines show the greatest value of each cell, so that no peak is lost. Nothing in a report can put control
// characters into a line.
package terminal
