//go:build e2e

// Package kubernetes runs the manifests of deploy/kubernetes on a real cluster: the API server, scheduler and
// controllers of Kubernetes, and two kubelets with a containerd each. It only runs on request ("make e2e-kubernetes"),
// because Kubernetes must be built first.
package kubernetes

import (
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, nil)) }
