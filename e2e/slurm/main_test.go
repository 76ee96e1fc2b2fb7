//go:build e2e

// Package slurm runs perfagent in the ranks of a real Slurm cluster with two nodes, which internal/slurmtest starts.
package slurm

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts)) }
