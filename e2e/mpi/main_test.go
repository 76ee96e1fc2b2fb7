//go:build e2e

// Package mpi runs perfagent under the launchers of real MPI implementations, Open MPI and MPICH, on one host and on
// two.
package mpi

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts)) }
