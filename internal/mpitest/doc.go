// Package mpitest finds Open MPI and MPICH for tests, installed or unpacked by scripts/test-tools.sh.
package mpitest
