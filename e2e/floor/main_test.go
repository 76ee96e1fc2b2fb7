//go:build e2e

// Package floor measures what a run and a sample cost, beside the least that they could cost and beside other tools.
package floor

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
