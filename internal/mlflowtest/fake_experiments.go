package mlflowtest

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"
)

// An experiment is an experiment of the Fake.
type experiment struct {
	id, name string
	created  int64
	deleted  bool
}

// A pair is a tag in requests and responses.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (e *experiment) json() map[string]any {
	return map[string]any{
		"experiment_id":     e.id,
		"name":              e.name,
		"artifact_location": e.location(),
		"lifecycle_stage":   stage(e.deleted),
		"creation_time":     e.created,
		"last_update_time":  e.created,
	}
}

func stage(deleted bool) string {
	if deleted {
		return "deleted"
	}
	return "active"
}

// location returns the location of the artifacts of e.
func (e *experiment) location() string { return "mlflow-artifacts:/" + e.id }

// experiment returns the experiment with the given ID, active or deleted.
func (f *Fake) experiment(id string) (*experiment, *apiError) {
	if _, err := strconv.Atoi(id); err != nil {
		return nil, invalid("Invalid experiment ID '%s'. Experiment ID must be a valid integer.", id)
	}
	for _, e := range f.experiments {
		if e.id == id {
			return e, nil
		}
	}
	return nil, absent("No Experiment with id=%s exists", id)
}

type experimentName struct {
	Name string `json:"experiment_name" need:"yes"`
}

func (f *Fake) experimentByName(in *experimentName) (any, *apiError) {
	for _, e := range f.experiments {
		if e.name == in.Name {
			return map[string]any{"experiment": e.json()}, nil
		}
	}
	return nil, absent("Could not find experiment with name '%s'", in.Name)
}

type experimentID struct {
	ID string `json:"experiment_id" need:"yes"`
}

func (f *Fake) getExperiment(in *experimentID) (any, *apiError) {
	e, err := f.experiment(in.ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"experiment": e.json()}, nil
}

type newExperiment struct {
	Name string `json:"name" need:"yes"`
}

func (f *Fake) createExperiment(in *newExperiment) (any, *apiError) {
	if utf8.RuneCountInString(in.Name) > maxName {
		return nil, invalid("'name' exceeds the maximum length of %d characters", maxName)
	}
	for _, e := range f.experiments {
		if e.name == in.Name { // even if e was deleted
			return nil, &apiError{
				status:  http.StatusBadRequest,
				code:    "RESOURCE_ALREADY_EXISTS",
				message: "Experiment(name=" + in.Name + ") already exists.",
			}
		}
	}

	e := &experiment{id: strconv.Itoa(len(f.experiments)), name: in.Name, created: now()}
	f.experiments = append(f.experiments, e)
	return map[string]any{"experiment_id": e.id}, nil
}

func (f *Fake) deleteExperiment(in *experimentID) (any, *apiError) { return f.setDeleted(in.ID, true) }

func (f *Fake) restoreExperiment(in *experimentID) (any, *apiError) {
	return f.setDeleted(in.ID, false)
}

// setDeleted deletes or restores an experiment and all runs in it.
func (f *Fake) setDeleted(id string, deleted bool) (any, *apiError) {
	e, err := f.experiment(id)
	if err != nil {
		return nil, err
	}
	if e.deleted == deleted {
		return nil, absent("No Experiment with id=%s exists", id)
	}

	e.deleted = deleted
	for _, r := range f.runs {
		if r.experiment == e {
			r.deleted = deleted
		}
	}
	return struct{}{}, nil
}

type experimentSearch struct {
	ViewType   string  `json:"view_type"`
	MaxResults integer `json:"max_results" need:"yes"` // servers interpret a missing value as 0 and refuse it
	PageToken  string  `json:"page_token"`
}

func (f *Fake) searchExperiments(in *experimentSearch) (any, *apiError) {
	from, err := page(in.MaxResults, in.PageToken)
	if err != nil {
		return nil, err
	}
	if err := checkView(in.ViewType); err != nil {
		return nil, err
	}

	found := []any{}
	for _, e := range slices.Backward(f.experiments) { // the newest first
		if !e.deleted {
			found = append(found, e.json())
		}
	}
	list, next := cutPage(found, from, in.MaxResults)
	return withToken(map[string]any{"experiments": list}, next), nil
}

// DeleteExperiment deletes the experiment with the given name, as a user does in the browser.
func (f *Fake) DeleteExperiment(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.experiments {
		if e.name == name {
			_, _ = f.setDeleted(e.id, true) // fails if e was already deleted
		}
	}
}
