package mlflow

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Status says where a run is in its life.
type Status = string

// The values of Status. MLflow has also SCHEDULED.
const (
	Running  Status = "RUNNING"
	Finished Status = "FINISHED" // done, and well
	Failed   Status = "FAILED"
	Killed   Status = "KILLED"
)

// Run is what the server says of one.
type Run struct {
	ID, Name, ExperimentID string

	// Status is one of the constants, or another word.
	Status Status

	// ArtifactURI is where the run's files are: what UploadArtifact goes by.
	ArtifactURI string

	// LifecycleStage is "active" or "deleted". Nothing can be logged to a deleted run.
	LifecycleStage string

	// StartTime and EndTime are zero when not known.
	StartTime, EndTime time.Time

	// Tags, and of each metric the latest point.
	Tags    map[string]string
	Metrics map[string]Metric
}

// NewRun says what run to create. Name and User may be empty, StartTime zero (the server then has none).
type NewRun struct {
	ExperimentID, Name, User string
	StartTime                time.Time
	Tags                     []Tag
}

// CreateRun makes a run with status RUNNING. When the connection breaks at a bad moment, the server may have made it
// although an error is returned: look for it by a tag before another one is made. It is tried again only where the
// server has certainly not made it.
func (c *Client) CreateRun(ctx context.Context, n NewRun) (*Run, error) {
	in := struct {
		ExperimentID string    `json:"experiment_id"`
		User         string    `json:"user_id,omitempty"`
		Name         string    `json:"run_name,omitempty"`
		StartTime    int64     `json:"start_time,omitempty"`
		Tags         []tagJSON `json:"tags,omitempty"`
	}{n.ExperimentID, n.User, n.Name, millis(n.StartTime), tagsJSON(n.Tags)}
	var out runOne
	const path = "runs/create"
	op := "create run in experiment " + quote(n.ExperimentID)
	q, err := c.newPost(op, path, in, &out)
	if err != nil {
		return nil, err
	}
	q.creates = true
	if err := c.do(ctx, q); err != nil {
		return nil, err
	}
	r := out.run
	if r.ID == "" {
		return nil, c.lacks(op, path, "run_id")
	}
	return &r, nil
}

// Run gets a run, also a deleted one. When there is none, NotFound(err).
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	var out runOne
	op := "get run " + quote(id)
	if err := c.get(ctx, op, "runs/get", url.Values{"run_id": {id}}, &out); err != nil {
		return nil, err
	}
	r := out.run
	if r.ID == "" {
		return nil, c.lacks(op, "runs/get", "run_id")
	}
	return &r, nil
}

// UpdateRun sets a run's status, and its end unless that is zero. An empty status is left as it is.
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
	in := struct {
		ID string `json:"run_id"`
	}{id}
	return c.post(ctx, "delete run "+quote(id), "runs/delete", in, nil)
}

// RunQuery says which runs to search. Filter and OrderBy are in MLflow's language:
//
//	tags.`team.name` = 'vision' and attributes.start_time > 1700000000000
//	attributes.start_time ASC
//
// Limit is the number of runs at most; 0: all.
type RunQuery struct {
	ExperimentIDs []string
	Filter        string
	OrderBy       []string
	Limit         int
}

// SearchRuns finds active runs, page by page until there is no more or the limit is reached. The server is asked for no
// more than that many. Runs that take more than 32 MiB of memory (of a page; with a limit, of all pages) are an error.
func (c *Client) SearchRuns(ctx context.Context, query RunQuery) ([]Run, error) {
	var runs []Run
	var pages pager
	left := int64(keepHistory)
	if query.Limit > 0 {
		left = keepLists
	}
	for {
		page := runList{most: pageSize}
		if query.Limit > 0 {
			page.most = min(pageSize, query.Limit-len(runs))
		}
		kept, err := c.runPage(ctx, query, &page, pages.token, left)
		if err != nil {
			return nil, err
		}
		left -= kept
		runs = append(runs, page.runs...)
		if query.Limit > 0 && len(runs) >= query.Limit {
			return runs, nil
		}
		more, err := pages.next("search runs", page.next, len(page.runs))
		if err != nil || !more {
			return runs, err
		}
	}
}

// runPage gets one page, which may take so many bytes of memory, and tells how many it takes.
func (c *Client) runPage(ctx context.Context, query RunQuery, page *runList, token string, keep int64) (kept int64, err error) {
	in := struct {
		ExperimentIDs []string `json:"experiment_ids"`
		Filter        string   `json:"filter,omitempty"`
		ViewType      string   `json:"run_view_type"`
		MaxResults    int      `json:"max_results"`
		OrderBy       []string `json:"order_by,omitempty"`
		PageToken     string   `json:"page_token,omitempty"`
	}{query.ExperimentIDs, query.Filter, "ACTIVE_ONLY", page.most, query.OrderBy, token}
	if in.ExperimentIDs == nil {
		in.ExperimentIDs = []string{}
	}
	q, err := c.newPost("search runs", "runs/search", in, page)
	if err != nil {
		return 0, err
	}
	q.keep = min(keep, keepLists)
	err = c.do(ctx, q)
	return q.kept, err
}

// RunURL is the address of a run's page for a browser.
func (c *Client) RunURL(r *Run) string {
	return c.URI() + "/#/experiments/" + url.PathEscape(r.ExperimentID) + "/runs/" + url.PathEscape(r.ID)
}

// millis is a time as MLflow has it: milliseconds since 1970. 0, which is left out of requests, for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
