//go:build e2e

// Package campaign looks for faults that harm a job, lose numbers, or make them wrong: it kills at random moments, and
// makes each system call of a run fail. make campaign runs all of it and writes the tables of docs/dev/testing.md.
package campaign

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
