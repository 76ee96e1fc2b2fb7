//go:build e2e

// Package campaign looks for faults that harm a job, or that make numbers missing or wrong. It kills processes at
// random times, and makes each system call of a run fail. make campaign runs all of its tests and writes the tables of
// docs/dev/testing.md.
package campaign

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
