// Package catalog finds the runs below a directory: their names, files and states. It can also
// remove a run.
package catalog
