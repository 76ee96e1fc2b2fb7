//go:build e2e

// Package floor measures the cost of a run and a sample, compared with the minimum and with other tools.
package floor

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
