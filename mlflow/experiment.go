package mlflow

import (
	"context"
	"fmt"
	"iter"
	"net/url"
)

// Experiment is what the server says of one. LifecycleStage is "active" or "deleted".
type Experiment struct {
	ID, Name, ArtifactLocation, LifecycleStage string
}

// ExperimentByName gets an experiment, also a deleted one, which keeps its name. When there is none, NotFound(err).
func (c *Client) ExperimentByName(ctx context.Context, name string) (*Experiment, error) {
	return c.experiment(ctx, "get experiment "+quote(name), "experiments/get-by-name", url.Values{"experiment_name": {name}})
}

// Experiment gets an experiment, also a deleted one, by its id. When there is none, NotFound(err).
func (c *Client) Experiment(ctx context.Context, id string) (*Experiment, error) {
	return c.experiment(ctx, "get experiment with id "+quote(id), "experiments/get", url.Values{"experiment_id": {id}})
}

func (c *Client) experiment(ctx context.Context, op, path string, query url.Values) (*Experiment, error) {
	var out struct {
		Experiment experimentAnswer `json:"experiment"`
	}
	if err := c.get(ctx, op, path, query, &out); err != nil {
		return nil, err
	}
	e := out.Experiment.experiment()
	if e.ID == "" {
		return nil, c.lacks(op, path, "experiment_id")
	}
	return &e, nil
}

// EnsureExperiment gets the experiment of that name, and makes it if there is none, also when somebody else makes it at
// the same moment; of one just made only ID, Name and LifecycleStage are known. A deleted one is an error: runs can't be
// put into it, and no other may have its name.
func (c *Client) EnsureExperiment(ctx context.Context, name string) (*Experiment, error) {
	e, err := c.ExperimentByName(ctx, name)
	if NotFound(err) {
		e, err = c.createExperiment(ctx, name)
		if AlreadyExists(err) {
			e, err = c.ExperimentByName(ctx, name)
		}
	}
	if err != nil {
		return nil, err
	}
	if e.LifecycleStage == "deleted" {
		return nil, fmt.Errorf("experiment %s is deleted on %s: restore it with \"mlflow experiments restore"+
			" --experiment-id %s\", or use another name", quote(name), c.URI(), e.ID)
	}
	return e, nil
}

// createExperiment makes an experiment, of which no more than name and id are known then.
func (c *Client) createExperiment(ctx context.Context, name string) (*Experiment, error) {
	in := struct {
		Name string `json:"name"`
	}{name}
	var out struct {
		ID text `json:"experiment_id"`
	}
	// Done twice it is an error that the caller knows, so that it may be sent again.
	err := c.post(ctx, "create experiment "+quote(name), "experiments/create", in, &out)
	if err == nil && out.ID == "" {
		return c.ExperimentByName(ctx, name)
	}
	return &Experiment{ID: string(out.ID), Name: name, LifecycleStage: "active"}, err
}

// SearchExperiments goes through all active experiments, page by page of at most 1000. After an error it ends;
// more than 100 pages are one.
func (c *Client) SearchExperiments(ctx context.Context) iter.Seq2[[]Experiment, error] {
	return func(yield func([]Experiment, error) bool) {
		pages := pager{most: experimentPages}
		for more := true; more; {
			page, next, err := c.experimentPage(ctx, pages.token)
			if err == nil {
				more, err = pages.next("search experiments", next, len(page))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) {
				return
			}
		}
	}
}

func (c *Client) experimentPage(ctx context.Context, token string) (page []Experiment, next string, err error) {
	in := struct {
		MaxResults int    `json:"max_results"`
		ViewType   string `json:"view_type"`
		PageToken  string `json:"page_token,omitempty"`
	}{pageSize, "ACTIVE_ONLY", token}
	out := experimentList{most: pageSize}
	err = c.post(ctx, "search experiments", "experiments/search", in, &out)
	return out.experiments, out.next, err
}
