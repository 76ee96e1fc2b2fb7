// Package procfile reads the small text files in which the kernel reports its numbers: those of
// procfs, sysfs and cgroupfs.
//
// Such a file has no size that stat(2) could tell, is made anew by each read, and may be gone,
// empty or somebody else's in a copied tree. So reads are bounded and what is parsed is checked.
// Nothing here allocates once its buffer is large enough, except to return a list or a string.
package procfile
