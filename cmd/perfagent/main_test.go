package main

import (
	"flag"
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
)

// update rewrites the golden files: go test ./cmd/perfagent -run Help -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// mlflowServers are the real MLflow servers that the tests share.
var mlflowServers mlflowtest.Pool

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, parts, mlflowServers.Close)) }
