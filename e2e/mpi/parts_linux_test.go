//go:build e2e

package mpi

import "github.com/perfagent/perfagent/internal/clitest"

// parts are the jobs that this test binary plays.
var parts = map[string]func(){"counter": clitest.Counter}
