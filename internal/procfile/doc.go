// Package procfile reads the small text files in which the kernel tells its numbers:
// those of procfs, sysfs and cgroupfs.
//
// Such a file has no size that stat(2) tells, is made anew by each read, and may be
// gone, empty or another one's in a copied tree. So what is read of it is bounded, and
// what is parsed is checked; nothing here allocates once its buffer is large enough.
package procfile
