//go:build e2e

// Package peers measures jobs with perfagent and with other tools, and compares each with the kernel's counters.
package peers

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
