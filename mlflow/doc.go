// Package mlflow is a small client for the REST interface of an MLflow tracking server:
// experiments, runs, metrics, tags and artifacts.
//
// A typical run:
//
//	cfg, err := mlflow.NewConfig(uri, os.LookupEnv)      // all MLFLOW_* variables, as MLflow itself reads them
//	c, err := mlflow.New(cfg)                            // reads certificates, but does not use the network
//	defer c.Close()
//	exp, err := c.EnsureExperiment(ctx, "trials")        // found or created
//	run, err := c.CreateRun(ctx, mlflow.NewRun{ExperimentID: exp.ID, StartTime: start})
//	for _, b := range mlflow.Split(points) {             // any number of points, split to fit one request each
//		err = c.LogBatch(ctx, run.ID, b)
//	}
//	err = c.UploadArtifact(ctx, run, "plots/cpu.svg", "image/svg+xml", svg)
//	err = c.UpdateRun(ctx, run.ID, mlflow.Finished, end)
//
// # Retries and time
//
// A request that fails temporarily is sent again, whatever its method: after the statuses 408, 429, 500, 502, 503 and
// 504, if the connection fails or breaks off, and if there is no response within Config.Timeout. There are up to
// Config.MaxRetries retries, with the same waits as in MLflow's Python client; see [Config]. The context limits the
// whole call. If a wait would exceed the deadline, the call returns the last failure immediately.
//
// Every request except CreateRun is safe to repeat: the server stores the same metric point, tag, status or file once.
//
// # Errors
//
// A failure of the server or of the connection is an [*Error] (see [NotFound], [Temporary], [RetryAfter]). A file that
// the run's store does not accept is an [*ArtifactError]. A batch that no server accepts fails before it is sent (see
// [Client.LogBatch] and [CheckKey]). The text of an error contains the request, the server, the failure and, if known,
// a remedy.
//
// # Sizes
//
// The size of everything that a server sends is limited. A response body may be at most 64 MiB ([Config].MaxResponse).
// Its decoded form may take about 32 MiB of memory, or 256 MiB for a list of all runs or experiments, or a history. A
// history has at most 2,000,000 points, a list has no more items than requested, and the number of pages is limited.
// Exceeding a limit is a permanent error.
//
// # Secrets
//
// No error, String or JSON of this package contains the user name, the password, the token, or the user info and query
// of a URI, even if the server sends them back. A text that may contain an escaped password or token is hidden.
// Credentials are sent only to the host and port of the tracking URI; see [Client] for redirects.
//
// # Differences from the Python client
//
// Not supported: stores other than http(s) servers ([CheckURI]); AWS signatures and authentication plugins
// ([NewConfig]); ~/.netrc; uploads straight to an object store with its credentials ([Client.UploadArtifact]).
package mlflow
