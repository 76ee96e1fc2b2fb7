// Package procfile reads and parses the small text files of the kernel: the files of procfs, sysfs and cgroupfs.
//
// stat(2) does not know the size of such a file. Each read generates it again, and in a copied tree it may be missing,
// empty or another file. So reads are bounded, and the parsers check what they parse. Nothing here allocates once its
// buffer is large enough, except to return a list or a string.
package procfile
