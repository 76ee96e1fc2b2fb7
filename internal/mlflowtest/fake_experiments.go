package mlflowtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An experiment is an experiment of the Fake.
type experiment struct {
	id, name, location string
	created, updated   int64
	deleted            bool
	tags               []pair
}

// A pair is a tag or a param, in requests and responses.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (f *Fake) experimentJSON(e *experiment) map[string]any {
	return map[string]any{
		"experiment_id":     e.id,
		"name":              e.name,
		"artifact_location": f.location(e),
		"lifecycle_stage":   stage(e.deleted),
		"creation_time":     f.int64(e.created),
		"last_update_time":  f.int64(max(e.created, e.updated)),
		"tags":              e.tags,
	}
}

func stage(deleted bool) string {
	if deleted {
		return "deleted"
	}
	return "active"
}

// location returns the location of the artifacts of e.
func (f *Fake) location(e *experiment) string {
	switch {
	case e.location != "":
		return e.location
	case f.ArtifactRoot != "":
		return strings.TrimSuffix(f.ArtifactRoot, "/") + "/" + e.id
	}
	return "mlflow-artifacts:/" + e.id
}

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
			return map[string]any{"experiment": f.experimentJSON(e)}, nil
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
	return map[string]any{"experiment": f.experimentJSON(e)}, nil
}

type newExperiment struct {
	Name     string `json:"name" need:"yes"`
	Location string `json:"artifact_location"`
	Tags     []pair `json:"tags"`
}

func (f *Fake) createExperiment(in *newExperiment) (any, *apiError) {
	if utf8.RuneCountInString(in.Name) > maxName {
		return nil, invalid("'name' exceeds the maximum length of %d characters", maxName)
	}
	for _, t := range in.Tags {
		if err := checkKey(t.Key); err != nil {
			return nil, err
		}
	}
	for _, e := range f.experiments {
		if e.name == in.Name { // also a deleted one
			return nil, &apiError{
				status:  http.StatusBadRequest,
				code:    "RESOURCE_ALREADY_EXISTS",
				message: "Experiment(name=" + in.Name + ") already exists.",
			}
		}
	}

	e := &experiment{
		id:       strconv.Itoa(len(f.experiments)),
		name:     in.Name,
		location: in.Location,
		created:  now(),
		tags:     in.Tags,
	}
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

	e.deleted, e.updated = deleted, now()
	for _, r := range f.runs {
		if r.experiment == e {
			r.deleted = deleted
		}
	}
	return struct{}{}, nil
}

type experimentSearch struct {
	ViewType   string   `json:"view_type"`
	MaxResults integer  `json:"max_results" need:"yes"` // servers interpret a missing one as 0 and refuse that
	OrderBy    []string `json:"order_by"`
	Filter     string   `json:"filter"`
	PageToken  string   `json:"page_token"`
}

func (f *Fake) searchExperiments(in *experimentSearch) (any, *apiError) {
	from, err := page(in.MaxResults, in.PageToken)
	if err != nil {
		return nil, err
	}
	conditions, err := parseFilter(in.Filter, experimentKeys)
	if err != nil {
		return nil, err
	}
	order, err := parseOrder(in.OrderBy, experimentKeys)
	if err != nil {
		return nil, err
	}
	view, err := parseView(in.ViewType)
	if err != nil {
		return nil, err
	}

	var found []*experiment
	for _, e := range f.experiments {
		if view(e.deleted) && conditions.match(e.field) {
			found = append(found, e)
		}
	}
	slices.Reverse(found) // the newest first
	slices.SortStableFunc(found, func(a, b *experiment) int { return order.compare(a.field, b.field) })

	list, next := cutPage(found, from, in.MaxResults)
	out := []any{}
	for _, e := range list {
		out = append(out, f.experimentJSON(e))
	}
	return withToken(map[string]any{"experiments": out}, next), nil
}

// field returns the value of e for a key in a filter or an order.
func (e *experiment) field(kind, key string) (any, bool) {
	if kind == "tag" {
		return tagValue(e.tags, key)
	}
	switch key {
	case "name":
		return e.name, true
	case "experiment_id":
		n, _ := strconv.ParseInt(e.id, 10, 64) // made by createExperiment
		return n, true
	case "creation_time":
		return e.created, true
	}
	return max(e.created, e.updated), true
}

func tagValue(tags []pair, key string) (any, bool) {
	for _, t := range tags {
		if t.Key == key {
			return t.Value, true
		}
	}
	return nil, false
}

// DeleteExperiment deletes the experiment called name, as a user does in the browser.
func (f *Fake) DeleteExperiment(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.experiments {
		if e.name == name {
			_, _ = f.setDeleted(e.id, true) // fails if it is deleted already
		}
	}
}
