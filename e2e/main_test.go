//go:build e2e

// Package e2e runs perfagent where its users' jobs run: in containers (podman), in the steps of Slurm, and in a virtual
// machine with control groups v2. See docs/dev/testing.md for requirements and expected results. The tests in a browser and
// the comparisons with other tools are in packages below.
package e2e

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts)) }
