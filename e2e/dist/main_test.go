//go:build e2e

// Package dist makes perfagent's packages as "make dist" does, in two clones, and installs and uses each of them.
package dist

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
