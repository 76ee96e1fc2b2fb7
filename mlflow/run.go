package mlflow

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// A Status is the state of a run.
type Status = string

// The values of Status. MLflow also has SCHEDULED.
const (
	Running  Status = "RUNNING"
	Finished Status = "FINISHED" // successfully
	Failed   Status = "FAILED"
	Killed   Status = "KILLED"
)

// A Run is the server's description of a run.
type Run struct {
	ID, Name, ExperimentID string

	// Status is one of the constants, or another value from the server.
	Status Status

	// ArtifactURI is the location of the run's files, for UploadArtifact.
	ArtifactURI string

	// LifecycleStage is "active" or "deleted". Nothing can be logged to a deleted run.
	LifecycleStage string

	// StartTime and EndTime are zero if unknown.
	StartTime, EndTime time.Time

	Tags map[string]string

	// Metrics holds the latest point of each metric.
	Metrics map[string]Metric
}

// A NewRun describes a run to create. Name may be empty. A zero StartTime is not sent.
type NewRun struct {
	ExperimentID, Name string
	StartTime          time.Time
	Tags               []Tag
}

// CreateRun creates a run with status RUNNING. It retries only if it is certain that the server has not created the
// run. If the connection breaks after the request was sent, CreateRun returns an error although the server may have
// created the run. In that case, search for the run by a tag before creating another one.
func (c *Client) CreateRun(ctx context.Context, n NewRun) (*Run, error) {
	in := struct {
		ExperimentID string `json:"experiment_id"`
		Name         string `json:"run_name,omitempty"`
		StartTime    int64  `json:"start_time,omitempty"`
		Tags         []Tag  `json:"tags,omitempty"`
	}{n.ExperimentID, n.Name, millis(n.StartTime), n.Tags}

	q := c.newPost("create run in experiment "+quote(n.ExperimentID), "runs/create", in, nil)
	q.creates = true
	return c.oneRun(ctx, q)
}

// Run returns the run with the given ID, even if it was deleted. If there is none, NotFound is true for the error.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	return c.oneRun(ctx, c.newGet("get run "+quote(id), "runs/get", url.Values{"run_id": {id}}, nil))
}

// oneRun sends q and returns the run in the response.
func (c *Client) oneRun(ctx context.Context, q *call) (*Run, error) {
	var out struct {
		Run runJSON `json:"run"`
	}
	q.out = &out
	if err := c.do(ctx, q); err != nil {
		return nil, err
	}
	run := out.Run.run()
	if run.ID == "" {
		return nil, c.missingField(q, "run_id")
	}
	return &run, nil
}

// UpdateRun sets a run's status and end time. An empty status and a zero end are not sent.
func (c *Client) UpdateRun(ctx context.Context, id string, status Status, end time.Time) error {
	in := struct {
		ID     string `json:"run_id"`
		Status string `json:"status,omitempty"`
		End    int64  `json:"end_time,omitempty"`
	}{id, status, millis(end)}
	return c.post(ctx, fmt.Sprintf("set run %s to %s", quote(id), status), "runs/update", in, nil)
}

// DeleteRun marks a run as deleted.
func (c *Client) DeleteRun(ctx context.Context, id string) error {
	return c.post(ctx, "delete run "+quote(id), "runs/delete", map[string]string{"run_id": id}, nil)
}

// A RunQuery selects runs. Filter and OrderBy use MLflow's search syntax:
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

// SearchRuns returns the active runs that match query. It requests them in pages, but never more runs than query.Limit.
func (c *Client) SearchRuns(ctx context.Context, query RunQuery) ([]Run, error) {
	const op = "search runs"
	memory := maxListMemory
	if query.Limit > 0 {
		memory = maxMemory
	}
	return fetch(ctx, c, list[Run]{
		noun: "runs", limit: max(0, query.Limit), maxPages: maxPages, memory: memory,
		items: func(p *page) (out []Run) {
			for _, r := range p.Runs {
				out = append(out, r.run())
			}
			return out
		},
		request: func(token string, have int) *call {
			in := struct {
				ExperimentIDs []string `json:"experiment_ids"`
				Filter        string   `json:"filter,omitempty"`
				ViewType      string   `json:"run_view_type"`
				MaxResults    int      `json:"max_results"`
				OrderBy       []string `json:"order_by,omitempty"`
				PageToken     string   `json:"page_token,omitempty"`
			}{query.ExperimentIDs, query.Filter, "ACTIVE_ONLY", pageSize, query.OrderBy, token}
			if query.Limit > 0 {
				in.MaxResults = min(pageSize, query.Limit-have)
			}
			if in.ExperimentIDs == nil {
				in.ExperimentIDs = []string{}
			}
			return c.newPost(op, "runs/search", in, nil)
		},
	})
}

// RunURL returns the address of a run's page for a browser.
func (c *Client) RunURL(r *Run) string {
	return c.URI() + "/#/experiments/" + url.PathEscape(r.ExperimentID) + "/runs/" + url.PathEscape(r.ID)
}
