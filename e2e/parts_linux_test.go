//go:build e2e

package e2e

import "github.com/perfagent/perfagent/internal/clitest"

// parts are the helpers of this test binary.
var parts = map[string]func(){"counter": clitest.Counter}
