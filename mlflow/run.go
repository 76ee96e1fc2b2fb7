package mlflow

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"time"
)

// A Status says where a run is in its life.
type Status = string

// The values of Status. MLflow also has SCHEDULED.
const (
	Running  Status = "RUNNING"
	Finished Status = "FINISHED" // ended well
	Failed   Status = "FAILED"
	Killed   Status = "KILLED"
)

// A Run is the server's description of a run.
type Run struct {
	ID, Name, ExperimentID string

	// Status is one of the constants or another word.
	Status Status

	// ArtifactURI says where the run's files are. UploadArtifact needs it.
	ArtifactURI string

	// LifecycleStage is "active" or "deleted". Nothing can be logged to a deleted run.
	LifecycleStage string

	// StartTime and EndTime are zero if not known.
	StartTime, EndTime time.Time

	Tags map[string]string

	// Metrics has the latest point of each metric.
	Metrics map[string]Metric
}

// A NewRun describes a run to create. Name and User may be empty. If StartTime is zero, the server
// has none either.
type NewRun struct {
	ExperimentID, Name, User string
	StartTime                time.Time
	Tags                     []Tag
}

// CreateRun creates a run with status RUNNING. It is tried again only if the server has certainly
// not created it. If the connection breaks at a bad moment, an error is returned although the
// server may have created the run: look for it by a tag before creating another one.
func (c *Client) CreateRun(ctx context.Context, n NewRun) (*Run, error) {
	in := struct {
		ExperimentID string `json:"experiment_id"`
		User         string `json:"user_id,omitempty"`
		Name         string `json:"run_name,omitempty"`
		StartTime    int64  `json:"start_time,omitempty"`
		Tags         []Tag  `json:"tags,omitempty"`
	}{n.ExperimentID, n.User, n.Name, millis(n.StartTime), n.Tags}

	const path = "runs/create"
	q, err := c.newPost("create run in experiment "+quote(n.ExperimentID), path, in, nil)
	if err != nil {
		return nil, err
	}
	q.creates = true
	return c.oneRun(ctx, q, path)
}

// Run returns the run with that ID. It may be a deleted one. If there is none, NotFound reports
// true for the error.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	const path = "runs/get"
	return c.oneRun(ctx, c.newGet("get run "+quote(id), path, url.Values{"run_id": {id}}, nil), path)
}

// oneRun sends a call whose answer is one run.
func (c *Client) oneRun(ctx context.Context, q *call, path string) (*Run, error) {
	var run Run
	q.maxAnswer, q.memory = maxLargeAnswer, memory{limit: maxListMemory}
	q.decode = func(d *decoder) error {
		run = Run{}
		return d.object(func(name string) (err error) {
			if name != "run" {
				return d.skip()
			}
			run, err = d.run()
			return err
		})
	}

	if err := c.do(ctx, q); err != nil {
		return nil, err
	}

	if run.ID == "" {
		return nil, c.missingField(q.op, path, "run_id")
	}

	return &run, nil
}

// UpdateRun sets a run's status and, unless end is zero, its end. An empty status leaves the run's
// as it is.
func (c *Client) UpdateRun(ctx context.Context, id string, status Status, end time.Time) error {
	in := struct {
		ID     string `json:"run_id"`
		Status string `json:"status,omitempty"`
		End    int64  `json:"end_time,omitempty"`
	}{id, status, millis(end)}
	return c.post(ctx, fmt.Sprintf("set run %s to %s", quote(id), status), "runs/update", in, (*decoder).skip)
}

// DeleteRun marks a run as deleted.
func (c *Client) DeleteRun(ctx context.Context, id string) error {
	in := struct {
		ID string `json:"run_id"`
	}{id}
	return c.post(ctx, "delete run "+quote(id), "runs/delete", in, (*decoder).skip)
}

// A RunQuery says which runs to search. Filter and OrderBy are in MLflow's language:
//
//	tags.`team.name` = 'vision' and attributes.start_time > 1700000000000
//	attributes.start_time ASC
//
// Limit is the maximum number of runs; 0 means all.
type RunQuery struct {
	ExperimentIDs []string
	Filter        string
	OrderBy       []string
	Limit         int
}

// SearchRuns returns the active runs that match a query. It requests page by page, and no more runs
// than the limit. Runs that take more than 32 MiB of memory, or 256 MiB without a limit, are an
// error.
func (c *Client) SearchRuns(ctx context.Context, query RunQuery) ([]Run, error) {
	runs := list[Run]{
		op:       "search runs",
		field:    "runs",
		noun:     "runs",
		item:     (*decoder).run,
		max:      math.MaxInt,
		maxPages: maxPages,
		memory:   memory{limit: maxHistoryMemory},
	}
	if query.Limit > 0 {
		runs.max, runs.enough, runs.memory.limit = query.Limit, query.Limit, maxListMemory
	}

	return fetch(ctx, c, runs, func(token string, have int) (*call, error) {
		in := struct {
			ExperimentIDs []string `json:"experiment_ids"`
			Filter        string   `json:"filter,omitempty"`
			ViewType      string   `json:"run_view_type"`
			MaxResults    int      `json:"max_results"`
			OrderBy       []string `json:"order_by,omitempty"`
			PageToken     string   `json:"page_token,omitempty"`
		}{query.ExperimentIDs, query.Filter, "ACTIVE_ONLY", min(pageSize, runs.max-have), query.OrderBy, token}
		if in.ExperimentIDs == nil {
			in.ExperimentIDs = []string{}
		}
		return c.newPost(runs.op, "runs/search", in, nil)
	})
}

// maxEntries limits the metrics and tags of a run. A report of 1000 nodes has 21,000.
const maxEntries = 200_000

// run decodes a run with its tags and metrics.
func (d *decoder) run() (Run, error) {
	var info infoAnswer
	tags, metrics := make(map[string]string), make(map[string]Metric)
	entries := 0 // in the answer, which may name one twice
	list := func(entry func() error) error {
		return d.array(func() error {
			if entries++; entries > maxEntries {
				return tooMany(maxEntries, "metrics and tags of one run")
			}
			return entry()
		})
	}
	data := func(name string) error {
		switch name {
		case "metrics":
			return list(func() error {
				var m metricAnswer
				err := d.value(&m)
				metrics[m.Key] = m.metric()
				return cmp.Or(err, d.memory.take(metricCost, m.Key))
			})
		case "tags":
			return list(func() error {
				var t Tag
				err := d.value(&t)
				tags[t.Key] = t.Value
				return cmp.Or(err, d.memory.take(tagCost, t.Key, t.Value))
			})
		}
		return d.skip()
	}
	err := d.object(func(name string) error {
		switch name {
		case "info":
			return d.value(&info)
		case "data":
			return d.object(data)
		}
		return d.skip()
	})
	if err != nil {
		return Run{}, err
	}

	r := info.run()
	r.Tags, r.Metrics = tags, metrics
	return r, d.memory.take(runCost, r.ID, r.Name, r.ExperimentID, r.Status, r.ArtifactURI, r.LifecycleStage)
}

// RunURL returns the address of a run's page for a browser.
func (c *Client) RunURL(r *Run) string {
	return c.URI() + "/#/experiments/" + url.PathEscape(r.ExperimentID) + "/runs/" + url.PathEscape(r.ID)
}
