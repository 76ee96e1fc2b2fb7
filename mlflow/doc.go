// Package mlflow is a small client for the REST interface of an MLflow tracking server:
// experiments, runs, metrics, tags and artifacts.
//
// A typical run:
//
//	cfg, err := mlflow.NewConfig(uri, os.LookupEnv)      // all MLFLOW_* variables, as MLflow itself reads them
//	c, err := mlflow.New(cfg)                            // reads certificates; no network yet
//	defer c.Close()
//	exp, err := c.EnsureExperiment(ctx, "trials")        // found or created
//	run, err := c.CreateRun(ctx, mlflow.NewRun{ExperimentID: exp.ID, StartTime: start})
//	for _, b := range mlflow.Split(points) {             // any number of points, cut to what one request may hold
//		err = c.LogBatch(ctx, run.ID, b)
//	}
//	err = c.UploadArtifact(ctx, run, "plots/cpu.svg", "image/svg+xml", svg)
//	err = c.UpdateRun(ctx, run.ID, mlflow.Finished, end)
//
// # Retries and time
//
// A request that failed temporarily is sent again, whatever its method: after the statuses 408, 429, 500, 502, 503 and
// 504, if the connection failed or broke off, and if no response came within Config.Timeout. There are up to
// Config.MaxRetries retries, after the waits of MLflow's Python client; see [Config]. The context limits the whole
// call. A wait beyond its deadline does not begin: the call returns the last real failure at once.
//
// Every request but CreateRun is safe to repeat: the server stores the same metric point, tag, status or file once.
//
// # Errors
//
// A failure of the server or of the connection is an [*Error] (see [NotFound], [Temporary], [RetryAfter]). A file that
// the run's store does not accept is an [*ArtifactError]. A batch that no server accepts fails before it is sent (see
// [Client.LogBatch] and [CheckKey]). The text of an error names the request and the server, the failure and, where
// known, a remedy.
//
// # Sizes
//
// Everything that a server sends is limited. A response body may be at most 64 MiB ([Config].MaxResponse). Its decoded
// form may take about 32 MiB of memory; a list of all runs or experiments, or a history, 256 MiB. A history has at most
// 2,000,000 points, a list no more items than requested, and the number of pages is limited. Exceeding a limit is a
// permanent error.
//
// # Secrets
//
// User name, password, token, and the user info and query of a URI are in no error, no String and no JSON of this
// package, even if the server sends them back. A text that may contain an escaped password or token is hidden.
// Credentials are sent to the host and port of the tracking URI only; see [Client] for redirects.
//
// # Differences from the Python client
//
// Not supported: stores other than http(s) servers ([CheckURI]); AWS signatures and authentication plugins
// ([NewConfig]); ~/.netrc; uploads straight to an object store with its credentials ([Client.UploadArtifact]).
package mlflow
