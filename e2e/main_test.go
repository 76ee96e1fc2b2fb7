//go:build e2e

// Package e2e runs perfagent where its users' jobs run: in containers (podman), in the steps of Slurm, and in a virtual
// machine with control groups v2. See docs/testing.md for what each needs and what must come out. The tests in a
// browser and those beside other tools are in packages of their own below.
package e2e

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts)) }
