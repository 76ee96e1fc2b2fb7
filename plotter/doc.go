// Package plotter makes pictures of a Report: one HTML page that needs no network,
// static charts as SVG and PNG, and sparklines for a terminal. All of them draw the
// envelope of the kept samples, so that no peak is lost to thinning.
//
// It reads reports and knows no commands, files or servers.
package plotter
