//go:build e2e

// Package dist runs "make dist" in two clones, and installs and uses each of the packages.
package dist

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
