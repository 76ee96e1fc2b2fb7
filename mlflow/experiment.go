package mlflow

import (
	"context"
	"fmt"
	"net/url"
)

// An Experiment is the server's description of an experiment.
type Experiment struct {
	ID               string `json:"experiment_id"`
	Name             string `json:"name"`
	ArtifactLocation string `json:"artifact_location"`

	// LifecycleStage is "active" or "deleted".
	LifecycleStage string `json:"lifecycle_stage"`
}

// ExperimentByName returns the experiment with the given name, even if it was deleted, because deleted experiments keep
// their names. If there is none, NotFound is true for the error.
func (c *Client) ExperimentByName(ctx context.Context, name string) (*Experiment, error) {
	op := "get experiment " + quote(name)
	return c.experiment(ctx, op, "experiments/get-by-name", url.Values{"experiment_name": {name}})
}

// Experiment returns the experiment with the given ID, even if it was deleted. If there is none, NotFound is true for
// the error.
func (c *Client) Experiment(ctx context.Context, id string) (*Experiment, error) {
	op := "get experiment with id " + quote(id)
	return c.experiment(ctx, op, "experiments/get", url.Values{"experiment_id": {id}})
}

func (c *Client) experiment(ctx context.Context, op, path string, query url.Values) (*Experiment, error) {
	var out struct {
		Experiment Experiment `json:"experiment"`
	}
	q := c.newGet(op, path, query, &out)
	if err := c.do(ctx, q); err != nil {
		return nil, err
	}
	if out.Experiment.ID == "" {
		return nil, c.missingField(q, "experiment_id")
	}
	return &out.Experiment, nil
}

// EnsureExperiment returns the experiment with the given name, and creates it if there is none. Another process may
// create it at the same time. For a new experiment, only ID, Name and LifecycleStage are returned. If the experiment
// was deleted, EnsureExperiment returns an error, because it can have no new runs, and no other experiment can have its
// name.
func (c *Client) EnsureExperiment(ctx context.Context, name string) (*Experiment, error) {
	e, err := c.ExperimentByName(ctx, name)
	if NotFound(err) {
		e, err = c.createExperiment(ctx, name)
		if alreadyExists(err) {
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

// createExperiment creates an experiment. The request may be sent twice, so the caller must handle an alreadyExists
// error.
func (c *Client) createExperiment(ctx context.Context, name string) (*Experiment, error) {
	var out struct {
		ID string `json:"experiment_id"`
	}
	err := c.post(ctx, "create experiment "+quote(name), "experiments/create", map[string]string{"name": name}, &out)
	if err == nil && out.ID == "" {
		return c.ExperimentByName(ctx, name)
	}
	return &Experiment{ID: out.ID, Name: name, LifecycleStage: "active"}, err
}

const (
	pageSize           = 1000 // MLflow's default
	maxExperimentPages = 100
)

// SearchExperiments returns all active experiments. More than 100 pages of 1000 experiments are an error.
func (c *Client) SearchExperiments(ctx context.Context) ([]Experiment, error) {
	const op = "search experiments"
	return fetch(ctx, c, list[Experiment]{
		noun: "experiments", maxPages: maxExperimentPages, memory: maxListMemory,
		items: func(p *page) []Experiment { return p.Experiments },
		request: func(token string, _ int) *call {
			in := struct {
				MaxResults int    `json:"max_results"`
				ViewType   string `json:"view_type"`
				PageToken  string `json:"page_token,omitempty"`
			}{pageSize, "ACTIVE_ONLY", token}
			return c.newPost(op, "experiments/search", in, nil)
		},
	})
}
