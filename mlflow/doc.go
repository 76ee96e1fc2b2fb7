// Package mlflow is a small client for the REST interface of an MLflow tracking server:
// experiments, runs, metrics, tags and artifacts.
//
// The story of a run:
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
// A request of any method that failed in a way that may pass is sent again: after the
// statuses 408, 429, 500, 502, 503 and 504, if no connection could be made or it broke off, and if
// there was no answer within Config.Timeout. There are up to Config.MaxRetries retries, after the
// waits of MLflow's Python client; see [Config]. The context limits all of it. A wait that would
// outlast its deadline is not begun, and the last real failure is returned at once.
//
// It is safe to send anything twice except CreateRun: the same metric point, tag, status or file is
// stored once.
//
// # Errors
//
// What the server or the way to it did wrong is an [*Error] (see [NotFound], [Temporary],
// [RetryAfter]). A file that the run's store does not take from us is an [*ArtifactError]. A batch
// that no server takes is refused before it is sent (see [Client.LogBatch] and [CheckKey]). An
// error's text says what was requested from whom, what went wrong and, where known, what to do.
//
// # Sizes
//
// All that a server sends is limited. An answer has at most 64 MiB ([Config].MaxAnswer), and the items
// of an array in it take at most 64 MiB of memory. A history has at most 2,000,000 points, a list no
// more items than were requested, and pages come to an end. More is an error that does not pass by
// itself.
//
// # Secrets
//
// User name, password, token, and the user info and query of a URI are in no error, no String and
// no JSON of this package, even if the server sends them back. A text that may have a password or
// token in an escaped form is not shown. They go to the host and port of the
// tracking URI and nowhere else; see [Client] for redirects.
//
// # What Python's client does and this one does not
//
// Other stores than http(s) servers ([CheckURI]); AWS signatures and authentication plugins
// ([NewConfig]); ~/.netrc; uploads straight to an object store with its own credentials
// ([Client.UploadArtifact]).
package mlflow
