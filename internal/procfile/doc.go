// Package procfile reads and parses the small text files of the kernel: the files of procfs, sysfs and cgroupfs.
//
// stat(2) does not report the size of such a file, because each read generates the content. In a copied tree, the file
// may be missing, empty or replaced. Therefore reads are bounded, and the parsers check their input. Once its buffer is
// large enough, no function allocates, except to return a list or a string.
package procfile
