// Package procfile reads and parses the small text files of the kernel: the files of procfs, sysfs and cgroupfs.
//
// stat(2) does not know the size of such a file: each read generates its content again. In a copied tree the file may
// be missing, empty or replaced. So reads are bounded, and the parsers check what they parse. Nothing here allocates
// after its buffer has grown large enough, except to return a list or a string.
package procfile
