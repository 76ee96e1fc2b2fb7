//go:build e2e

// Package kubernetes runs the manifests of deploy/kubernetes on a real cluster: the API server, scheduler and
// controllers of Kubernetes, and two kubelets with a containerd each. It runs only where it is asked for ("make
// e2e-kubernetes"), because Kubernetes has to be built first.
package kubernetes

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
