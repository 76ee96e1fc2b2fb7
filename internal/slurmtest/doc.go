// Package slurmtest starts a real Slurm of several machines for a test, as root, on one kernel: each machine has a host
// name, an address, a /dev/shm and control groups of its own. Nothing is installed, no network of the test's machine is
// touched, and the test's end takes all of it away.
package slurmtest
