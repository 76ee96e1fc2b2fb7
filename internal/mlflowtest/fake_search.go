package mlflowtest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// filter matches the filters that perfagent sends.
var filter = regexp.MustCompile("^tags\\.`([^`]+)` = '([^'\\\\]*)'(?: and attributes\\.start_time >= ([0-9]+))?$")

// parseFilter returns a function that reports whether a run matches text.
func parseFilter(text string) (func(*run) bool, *apiError) {
	m := filter.FindStringSubmatch(text)
	switch {
	case text == "":
		return func(*run) bool { return true }, nil
	case m == nil:
		return nil, invalid("Invalid clause(s) in filter string: '%s'", text)
	}
	since, _ := strconv.ParseInt(m[3], 10, 64) // 0 without a time
	return func(r *run) bool {
		value, there := r.tags[m[1]]
		return there && value == m[2] && r.start >= since
	}, nil
}

// checkView refuses all view types except the one for active runs or experiments.
func checkView(name string) *apiError {
	if name != "" && name != "ACTIVE_ONLY" {
		return invalid("Invalid view type '%s'", name)
	}
	return nil
}

// page checks the size of a page and returns the offset that token represents.
func page(size integer, token string) (int, *apiError) {
	if size <= 0 || size > maxPage {
		return 0, invalid("Invalid value %d for parameter 'max_results' supplied."+
			" It must be at least 1 and at most %d", size, maxPage)
	}
	return offset(token)
}

// offset parses a page token.
func offset(token string) (int, *apiError) {
	if token == "" {
		return 0, nil
	}
	var content struct {
		Offset int `json:"offset"`
	}
	data, err := base64.StdEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(data, &content) != nil || content.Offset < 0 {
		return 0, invalid("Invalid page token, could not base64-decode")
	}
	return content.Offset, nil
}

// cutPage returns the page of list that begins at from, and the token of the next page if there is one.
func cutPage[T any](list []T, from int, size integer) ([]T, string) {
	from = min(from, len(list))
	to := min(from+int(size), len(list))
	if to == len(list) {
		return list[from:], ""
	}
	return list[from:to], pageToken(to)
}

// pageToken returns a token that is opaque to clients.
func pageToken(offset int) string {
	token, _ := json.Marshal(map[string]int{"offset": offset}) // never fails
	return base64.StdEncoding.EncodeToString(token)
}

func withToken(answer map[string]any, token string) map[string]any {
	if token != "" {
		answer["next_page_token"] = token
	}
	return answer
}

type runSearch struct {
	ExperimentIDs []string `json:"experiment_ids"`
	Filter        string   `json:"filter"`
	View          string   `json:"run_view_type"`
	MaxResults    *integer `json:"max_results"`
	OrderBy       []string `json:"order_by"`
	PageToken     string   `json:"page_token"`
}

func (f *Fake) searchRuns(in *runSearch) (any, *apiError) {
	size := integer(defaultPage)
	if in.MaxResults != nil {
		size = *in.MaxResults
	}
	from, err := page(size, in.PageToken)
	if err != nil {
		return nil, err
	}
	found, err := f.findRuns(in)
	if err != nil {
		return nil, err
	}

	list, next := cutPage(found, from, size)
	if next == "" && len(list) == int(size) { // as in 2.x, where the next page is then empty
		next = pageToken(from + len(list))
	}

	answer := map[string]any{}
	var out []any
	for _, r := range list {
		out = append(out, r.json())
	}
	if out != nil {
		answer["runs"] = out
	}
	return withToken(answer, next), nil
}

// findRuns returns all runs that match a search, in the requested order.
func (f *Fake) findRuns(in *runSearch) ([]*run, *apiError) {
	matches, err := parseFilter(in.Filter)
	if err != nil {
		return nil, err
	}
	if err := checkView(in.View); err != nil {
		return nil, err
	}
	for _, id := range in.ExperimentIDs {
		if _, err := strconv.Atoi(id); err != nil {
			return nil, invalid("Invalid experiment ID '%s'. Experiment ID must be a valid integer.", id)
		}
	}
	sign := -1
	switch {
	case slices.Equal(in.OrderBy, []string{"attributes.start_time ASC"}):
		sign = 1
	case len(in.OrderBy) > 0:
		return nil, invalid("Invalid order_by clause '%s'. Could not be parsed.", in.OrderBy)
	}

	var found []*run
	for _, r := range f.runs {
		if slices.Contains(in.ExperimentIDs, r.experiment.id) && !r.deleted && matches(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *run) int {
		return cmp.Or(sign*cmp.Compare(a.start, b.start), strings.Compare(a.id, b.id))
	})
	return found, nil
}
