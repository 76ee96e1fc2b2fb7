// Package catalog knows the runs below a directory: what they are called, which files belong to them,
// what became of them, and how to remove one.
package catalog
