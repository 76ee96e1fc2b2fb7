// Package slurmtest starts a real Slurm cluster of several machines for a test. It needs root. All machines share one
// kernel, but each has a separate host name, address, /dev/shm and control groups. The package installs nothing, does
// not change the network of the test's machine, and removes everything when the test ends.
package slurmtest
