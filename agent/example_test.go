package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/perfagent/perfagent/agent"
)

// Run wraps a command. The command's exit code is not an error.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	result, err := agent.Run(context.Background(), agent.Options{
		Args:   []string{"sh", "-c", "echo working; exit 3"},
		Out:    dir,
		MLflow: agent.Off,
	})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("exit code", result.ExitCode)
	fmt.Println("verdict:", result.Report.Run.Verdict.Text)
	// Output:
	// working
	// exit code 3
	// verdict: exited with code 3
}

// A program watches itself and its children from inside.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	monitor, err := agent.Start(context.Background(), agent.Options{Out: dir, MLflow: agent.Off})
	if err != nil {
		log.Fatal(err)
	}
	sum := 0
	for i := range 10_000_000 { // the work to measure
		sum += i
	}
	result, err := monitor.Stop()
	if err != nil {
		log.Fatal(err)
	}

	node := result.Report.Nodes["0"]
	fmt.Println("a report of this process:", node.Job.PID == os.Getpid())
	fmt.Println("CPU time:", node.Metric("job_cpu_seconds") > 0, sum > 0)
	// Output:
	// a report of this process: true
	// CPU time: true true
}
