// Package plotter makes pictures of a Report: one HTML page that needs no network, and static charts as SVG and PNG.
// All of them draw the envelope of the kept samples, so thinning loses no peak. The subpackage terminal draws with
// text.
//
// The package reads reports, and is independent of commands, files and servers.
package plotter
