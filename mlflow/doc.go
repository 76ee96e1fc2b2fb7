// Package mlflow is a small client of an MLflow tracking server: experiments, runs, metrics, tags, artifacts, over
// MLflow's REST interface, with nothing but net/http and encoding/json.
//
// The story of a run:
//
//	cfg, err := mlflow.NewConfig(uri, os.LookupEnv)      // all MLFLOW_* variables, as MLflow itself reads them
//	c, err := mlflow.New(cfg)                            // reads certificates; no network yet
//	defer c.Close()
//	exp, err := c.EnsureExperiment(ctx, "trials")        // found, or made
//	run, err := c.CreateRun(ctx, mlflow.NewRun{ExperimentID: exp.ID, StartTime: start})
//	for _, b := range mlflow.Split(points) {             // any number of points, cut to what one request may hold
//		err = c.LogBatch(ctx, run.ID, b)
//	}
//	err = c.UploadArtifact(ctx, run, "plots/cpu.svg", "image/svg+xml", svg)
//	err = c.UpdateRun(ctx, run.ID, mlflow.Finished, end)
//
// # Retries and time
//
// A request that failed in a way that may pass (408, 429, 500, 502, 503, 504, a connection that could not be made or
// broke off, no answer within Config.Timeout) is sent again up to Config.MaxRetries times, whatever its method, after
// the waits of MLflow's Python client; see [Config]. The context bounds all of it: a wait that would outlast its
// deadline is not begun, and the last real failure is returned at once. Sending again is safe for everything but
// CreateRun, which the server may then have done twice: the same metric point, tag, status or file is stored once.
//
// # Errors
//
// What the server or the way to it did wrong is an [*Error] (see [NotFound], [AlreadyExists], [Temporary],
// [RetryAfter]); a file that the run's store will not take from us is an [*ArtifactError]; a batch that no server takes
// is refused before it is sent ([ErrTooLarge], [CheckKey]). Their texts say what was asked of whom, what went wrong, and
// where it is known what to do.
//
// # Sizes
//
// What a server sends is bounded, whoever it is: an answer is at most 64 MiB long ([Config].MaxAnswer) and takes at most
// about 32 MiB of memory, a metric's history 256 MiB; a run has at most 200,000 metrics and tags, a history 2,000,000
// points, a list no more than was asked for, and pages come to an end. More is an error that does not pass.
//
// # Secrets
//
// User name, password, token, and the user info and query of a URI are in no error, no String and no JSON of this
// package, also where the server sends them back, passwords and tokens also in the escapes of URLs, JSON, Python and HTML. They go to the host and port of the tracking URI and nowhere else:
// see [Client] for redirects.
//
// # What Python's client does and this one does not
//
// Other stores than http(s) servers ([CheckURI]); AWS signatures and authentication plugins ([ErrUnsupportedAuth]);
// ~/.netrc; uploads straight to an object store with its own credentials (see [Client.UploadArtifact]).
package mlflow
