//go:build e2e

// Package peers measures jobs with perfagent and with other people's tools, each beside the kernel's own counters.
package peers

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
