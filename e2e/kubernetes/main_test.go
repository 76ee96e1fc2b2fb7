//go:build e2e

// Package kubernetes applies the manifests in deploy/kubernetes to a real cluster: the API server, the scheduler and
// the controllers of Kubernetes, and two kubelets with a containerd each. The test of the cluster runs only on request
// ("make e2e-kubernetes"), because Kubernetes must be built first.
package kubernetes

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
