package pusher

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/mlflow"
)

// A Destination says where numbers go.
type Destination struct {
	// RunID is a given run, or one that already has some of the numbers.
	RunID string

	// Given is set if a person named RunID. We never end such a run.
	Given bool

	// OtherServer is set if RunID was recorded on another server. If this one has it, it is taken;
	// otherwise the run is searched.
	OtherServer bool

	// ExperimentName says where a run of our own is created. If it is empty, ExperimentID does, and
	// if that is empty, too, it is Default.
	ExperimentName, ExperimentID string

	// ExperimentOnly restricts the search for a run to the experiment called ExperimentName.
	ExperimentOnly bool

	// CheckFirst looks for the experiment before anything is sent, for a dry run.
	CheckFirst bool

	// FewNames is set if the server takes few names of metrics a run. The live push then leaves room for those of the
	// end.
	FewNames bool

	// Invocation is the tag of the job's own runs, or "" if there was none.
	Invocation string
}

// searched returns the experiments in which runs are searched.
func (d Destination) searched(ctx context.Context, c *mlflow.Client) ([]mlflow.Experiment, error) {
	if !d.ExperimentOnly {
		return c.SearchExperiments(ctx)
	}
	e, err := c.ExperimentByName(ctx, d.ExperimentName)
	if mlflow.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []mlflow.Experiment{*e}, nil
}

// create creates a run of our own. known has the IDs of experiments by name.
func (id identity) create(
	ctx context.Context, c *mlflow.Client, d Destination, known map[string]string, name string,
) (*mlflow.Run, error) {
	experiment, err := d.experiment(ctx, c, known)
	if err != nil {
		return nil, err
	}
	run := mlflow.NewRun{ExperimentID: experiment, Name: name, StartTime: id.start, Tags: id.ownTags()}
	return c.CreateRun(ctx, run)
}

var errTwoExperiments = errors.New("MLFLOW_EXPERIMENT_NAME and MLFLOW_EXPERIMENT_ID name different experiments:" +
	" unset one of them")

// experiment returns the ID of the experiment for a run of our own. The name wins and is created if
// it is not known. The ID must exist.
func (d Destination) experiment(ctx context.Context, c *mlflow.Client, known map[string]string) (string, error) {
	if d.ExperimentName == "" && d.ExperimentID != "" {
		e, err := c.Experiment(ctx, d.ExperimentID)
		if err != nil {
			return "", err
		}
		return e.ID, nil
	}

	name := cmp.Or(d.ExperimentName, "Default")
	id, ok := known[name]
	if !ok {
		e, err := c.EnsureExperiment(ctx, name)
		if err != nil {
			return "", err
		}
		id = e.ID
	}
	if d.ExperimentID != "" && d.ExperimentID != id {
		return "", errTwoExperiments
	}
	return id, nil
}

// check returns why a run of our own cannot be created. It creates nothing.
func (d Destination) check(ctx context.Context, c *mlflow.Client) error {
	if d.ExperimentID == "" && !d.CheckFirst {
		return nil
	}

	var byName, byID *mlflow.Experiment
	var err error
	if d.ExperimentID != "" {
		if byID, err = c.Experiment(ctx, d.ExperimentID); err != nil {
			return err
		}
	}
	if d.ExperimentName != "" {
		if byName, err = c.ExperimentByName(ctx, d.ExperimentName); err != nil && !mlflow.NotFound(err) {
			return err
		}
	}

	for _, e := range []*mlflow.Experiment{byID, byName} {
		if e != nil && e.LifecycleStage == "deleted" {
			return fmt.Errorf("experiment %s (%s) is deleted: restore it with"+
				" \"mlflow experiments restore --experiment-id %s\", or name another one", e.Name, e.ID, e.ID)
		}
	}
	if byID != nil && d.ExperimentName != "" && (byName == nil || byName.ID != byID.ID) {
		return errTwoExperiments
	}
	return nil
}
