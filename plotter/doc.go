// Package plotter makes pictures of a Report: one HTML page that needs no network, and static
// charts as SVG and PNG. All of them draw the envelope of the kept samples, so that thinning loses
// no peak. Package terminal, inside it, draws with text.
//
// The package reads reports and knows no commands, files or servers.
package plotter
