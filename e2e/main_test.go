//go:build e2e

// Package e2e runs perfagent in the environments of its users' jobs: in containers (podman), in Slurm steps, and in a
// virtual machine with control groups v2. See docs/dev/testing.md for requirements and expected results. Subpackages
// contain the tests in a browser and the comparisons with other tools.
package e2e

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts)) }
