// Package slurmtest starts a real multi-machine Slurm cluster for a test, as root, on one kernel: each machine has a
// separate host name, address, /dev/shm and control groups. It installs nothing and leaves the network of the test's
// machine alone. The end of the test removes everything.
package slurmtest
