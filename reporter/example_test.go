package reporter_test

import (
	"fmt"
	"log"

	"github.com/perfagent/perfagent/reporter"
)

// This example merges the reports of two nodes. A metric that a node lacks is NaN.
func ExampleMerge() {
	files := []string{`{
		"schema": "perfagent.report/1",
		"run": {"id": "train", "exit_code": 0, "wall_seconds": 60},
		"nodes": {"0": {"metrics": {"job_avg_cpu_cores": 3.5, "job_peak_memory_mb": 2048}}}
	}`, `{
		"schema": "perfagent.report/1",
		"run": {"id": "train", "exit_code": 1, "wall_seconds": 60},
		"nodes": {"1": {"metrics": {"job_avg_cpu_cores": 0.5}}}
	}`}
	var sources []reporter.SourceReport
	for i, file := range files {
		r, err := reporter.Decode([]byte(file))
		if err != nil {
			log.Fatal(err)
		}
		sources = append(sources, reporter.SourceReport{Path: fmt.Sprintf("node-%d.json", i), Report: r})
	}

	run, err := reporter.Merge(sources)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("exit code", *run.Run.ExitCode)
	cores, _ := reporter.MetricByName("job_avg_cpu_cores")
	for _, index := range []string{"0", "1"} {
		node := run.Nodes[index]
		fmt.Printf("node %s: %v %s, peak memory %v MiB\n", index,
			node.Metric(cores.Name), cores.Unit, node.Metric("job_peak_memory_mb"))
	}
	// Output:
	// exit code 1
	// node 0: 3.5 CPUs, peak memory 2048 MiB
	// node 1: 0.5 CPUs, peak memory NaN MiB
}
