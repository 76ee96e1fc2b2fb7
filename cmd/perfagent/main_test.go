package main

import (
	"flag"
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/storetest"
)

// update rewrites the golden files: go test ./cmd/perfagent -run Help -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// mlflowServers are the real MLflow servers that the tests share.
var mlflowServers mlflowtest.Pool

func TestMain(m *testing.M) {
	os.Setenv("AWS_ACCESS_KEY_ID", storetest.S3KeyID) // for the test servers
	os.Setenv("AWS_SECRET_ACCESS_KEY", storetest.S3Secret)
	os.Setenv("AWS_REGION", "us-east-1")
	os.Unsetenv("AWS_SESSION_TOKEN")
	os.Exit(clitest.Main(m, parts, mlflowServers.Close))
}
