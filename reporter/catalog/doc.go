// Package catalog finds the runs below a directory, with their names, files and states. It can also remove runs.
package catalog
