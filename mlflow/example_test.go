package mlflow_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
)

// This example uses an in-memory server.
func Example() {
	fake := mlflowtest.NewFake()
	server := httptest.NewServer(fake)
	defer server.Close()

	environment := map[string]string{"MLFLOW_TRACKING_TOKEN": "not-shown"}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	config, err := mlflow.NewConfig(server.URL, lookup)
	if err != nil {
		log.Fatal(err)
	}
	client, err := mlflow.New(config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := trial(context.Background(), client); err != nil {
		log.Fatal(err)
	}
	run := fake.Runs()[0]
	fmt.Println(run.Info.ExperimentName, run.Info.Status, run.Tags["model"])
	fmt.Println(run.Metrics["loss"])
	fmt.Println(run.Artifacts[0].Path)
	// Output:
	// trials FINISHED small
	// [{1767225600000 0 0.5} {1767225660000 1 0.25}]
	// notes/readme.txt
}

// trial logs a run of one minute.
func trial(ctx context.Context, c *mlflow.Client) error {
	experiment, err := c.EnsureExperiment(ctx, "trials")
	if err != nil {
		return err
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	run, err := c.CreateRun(ctx, mlflow.NewRun{ExperimentID: experiment.ID, StartTime: start})
	if err != nil {
		return err
	}

	var points mlflow.Batch
	for i, loss := range []float64{0.5, 0.25} {
		at := start.Add(time.Duration(i) * time.Minute).UnixMilli()
		points.Metrics = append(points.Metrics, mlflow.Metric{Key: "loss", Value: loss, Timestamp: at,
			Step: int64(i)})
	}
	points.Tags = []mlflow.Tag{{Key: "model", Value: "small"}}
	for _, b := range mlflow.Split(points) {
		if err := c.LogBatch(ctx, run.ID, b); err != nil {
			return err
		}
	}

	if err := c.UploadArtifact(ctx, run, "notes/readme.txt", "text/plain", []byte("a trial")); err != nil {
		return err
	}
	return c.UpdateRun(ctx, run.ID, mlflow.Finished, start.Add(time.Minute))
}

// The error for an unsupported URI contains a remedy.
func ExampleCheckURI() {
	fmt.Println(mlflow.CheckURI("https://mlflow.example"))
	fmt.Println(mlflow.CheckURI("localhost:5000"))
	fmt.Println(mlflow.CheckURI("arn:aws:sagemaker:tracking-server"))
	// Output:
	// <nil>
	// the tracking URI has no scheme: put http:// or https:// in front of it
	// the tracking URI is an AWS resource, but perfagent can reach only http:// and https://: use an MLflow server's address
}

// PublicURI makes the address of a server safe to log.
func ExamplePublicURI() {
	fmt.Println(mlflow.PublicURI("https://alice:secret@mlflow.example/team/?key=secret"))
	// Output: https://mlflow.example/team
}
