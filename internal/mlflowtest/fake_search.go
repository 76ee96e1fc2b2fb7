package mlflowtest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// attributes has the keys of runs or experiments. A value is true if the attribute is a number.
type attributes map[string]bool

var (
	runKeys = attributes{
		"run_id": false, "run_name": false, "user_id": false, "status": false, "artifact_uri": false,
		"start_time": true, "end_time": true,
	}
	experimentKeys = attributes{
		"name": false, "experiment_id": true, "creation_time": true, "last_update_time": true,
	}
)

// fields returns the value of an item for a key in a condition or an order. ok is false if the item has none.
type fields func(kind, key string) (value any, ok bool)

// A condition is one comparison of a filter.
type condition struct {
	kind, key, op string
	text          string
	number        float64
}

type conditions []condition

// clause matches one comparison, in the part of the syntax that all servers interpret in the same way.
var clause = regexp.MustCompile("^\\s*(?:(\\w+)\\.)?(`[^`]+`|\"[^\"]+\"|[\\w.]+)" +
	"\\s*(=|!=|>=|<=|>|<)\\s*('[^'\\\\]*'|\"[^\"\\\\]*\"|-?[0-9]+(?:\\.[0-9]+)?)\\s*")

// and matches the word between two comparisons.
var and = regexp.MustCompile(`^(?i:and)\b`)

// parseFilter parses text, comparisons that are joined by AND.
func parseFilter(text string, known attributes) (conditions, *apiError) {
	var out conditions
	for rest := text; strings.TrimSpace(rest) != "" || out != nil; {
		m := clause.FindStringSubmatch(rest)
		if m == nil {
			return nil, invalid("Invalid clause(s) in filter string: '%s'", rest)
		}

		c, err := parseCondition(m[1], m[2], m[3], m[4], known)
		if err != nil {
			return nil, err
		}

		out = append(out, c)
		if rest = rest[len(m[0]):]; rest == "" {
			break
		}

		joint := and.FindString(rest)
		if joint == "" {
			return nil, invalid("Invalid clause(s) in filter string: '%s'", rest)
		}

		rest = rest[len(joint):]
	}

	return out, nil
}

// kinds maps the word before the dot to its meaning.
var kinds = map[string]string{
	"": "attribute", "attribute": "attribute", "attributes": "attribute", "run": "attribute", "attr": "attribute",
	"tag": "tag", "tags": "tag",
	"param": "param", "params": "param",
	"metric": "metric", "metrics": "metric",
}

// parseCondition checks one comparison and returns it as a condition.
func parseCondition(kind, key, op, value string, known attributes) (condition, *apiError) {
	c := condition{kind: kinds[kind], key: strings.Trim(key, "`\""), op: op}
	if c.kind == "" {
		return c, invalid("Invalid entity type '%s'."+
			" Valid values are ['metric', 'parameter', 'tag', 'attribute', 'dataset']", kind)
	}
	number, isAttribute := known[c.key]
	if c.kind == "attribute" && !isAttribute {
		return c, invalid("Invalid attribute key '%s' specified. Valid keys are '%q'",
			c.key, slices.Sorted(maps.Keys(known)))
	}

	number = number && c.kind == "attribute" || c.kind == "metric"
	quoted := strings.ContainsAny(value[:1], `'"`)
	switch {
	case number == quoted && number:
		return c, invalid("Expected numeric value type for numeric attribute: %s. Found %s", c.key, value)
	case number == quoted:
		return c, invalid("Expected a quoted string value for %s (e.g. 'my-value'). Got value %s", c.kind, value)
	case quoted && op != "=" && op != "!=":
		return c, invalid("Invalid comparator '%s' not one of '{'=', '!=', 'LIKE', 'ILIKE'}", op)
	case quoted:
		c.text = value[1 : len(value)-1]
	default:
		c.number, _ = strconv.ParseFloat(value, 64) // clause matches numbers only
	}
	return c, nil
}

// match reports whether all conditions hold. A condition on a missing value does not hold.
func (list conditions) match(get fields) bool {
	return !slices.ContainsFunc(list, func(c condition) bool {
		value, ok := get(c.kind, c.key)
		return !ok || !c.holds(value)
	})
}

// holds reports whether the condition holds for a value.
func (c *condition) holds(value any) bool {
	order := 0
	switch v := value.(type) {
	case string:
		order = strings.Compare(v, c.text)
	case int64:
		order = cmp.Compare(float64(v), c.number)
	case float64:
		order = cmp.Compare(v, c.number)
	}

	switch c.op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	}
	return order <= 0
}

// A term is one key by which an order sorts.
type term struct {
	kind, key string
	sign      int
}

type order []term

var orderTerm = regexp.MustCompile("^\\s*(?:(\\w+)\\.)?(`[^`]+`|\"[^\"]+\"|[\\w.]+)(?:\\s+(?i:(asc|desc)))?\\s*$")

// parseOrder parses terms like "attributes.start_time ASC".
func parseOrder(terms []string, known attributes) (order, *apiError) {
	var out order
	for _, text := range terms {
		m := orderTerm.FindStringSubmatch(text)
		if m == nil {
			return nil, invalid("Invalid order_by clause '%s'. Could not be parsed.", text)
		}

		t := term{kind: kinds[m[1]], key: strings.Trim(m[2], "`\""), sign: 1}
		if strings.EqualFold(m[3], "desc") {
			t.sign = -1
		}
		if _, ok := known[t.key]; t.kind == "" || t.kind == "attribute" && !ok {
			return nil, invalid("Invalid order_by key '%s' specified. Valid keys are '%q'",
				t.key, slices.Sorted(maps.Keys(known)))
		}
		out = append(out, t)
	}
	return out, nil
}

// compare compares two items. An item that lacks a key comes last.
func (o order) compare(a, b fields) int {
	for _, t := range o {
		x, okX := a(t.kind, t.key)
		y, okY := b(t.kind, t.key)
		c := 0
		switch {
		case !okX || !okY:
			if okX != okY {
				return map[bool]int{true: -1, false: 1}[okX]
			}
		default:
			c = compareAny(x, y)
		}
		if c != 0 {
			return c * t.sign
		}
	}
	return 0
}

func compareAny(x, y any) int {
	switch v := x.(type) {
	case string:
		return strings.Compare(v, y.(string))
	case int64:
		return cmp.Compare(v, y.(int64))
	}
	return cmp.Compare(x.(float64), y.(float64))
}

// parseView parses a view type. "" means ACTIVE_ONLY.
func parseView(name string) (func(deleted bool) bool, *apiError) {
	switch name {
	case "", "ACTIVE_ONLY":
		return func(deleted bool) bool { return !deleted }, nil
	case "DELETED_ONLY":
		return func(deleted bool) bool { return deleted }, nil
	case "ALL":
		return func(bool) bool { return true }, nil
	}
	return nil, invalid("Invalid view type '%s'", name)
}

// page checks the size of a page and returns the offset that token stands for.
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
	if next == "" && len(list) == int(size) { // like 2.x: the next page is empty
		next = pageToken(from + len(list))
	}

	answer := map[string]any{}
	var out []any
	for _, r := range list {
		out = append(out, f.runJSON(r))
	}
	if out != nil {
		answer["runs"] = out
	}
	return withToken(answer, next), nil
}

// findRuns returns all runs that match a search, in the order that it asks for.
func (f *Fake) findRuns(in *runSearch) ([]*run, *apiError) {
	conditions, err := parseFilter(in.Filter, runKeys)
	if err != nil {
		return nil, err
	}
	order, err := parseOrder(in.OrderBy, runKeys)
	if err != nil {
		return nil, err
	}
	view, err := parseView(in.View)
	if err != nil {
		return nil, err
	}
	for _, id := range in.ExperimentIDs {
		if _, err := strconv.Atoi(id); err != nil {
			return nil, invalid("Invalid experiment ID '%s'. Experiment ID must be a valid integer.", id)
		}
	}

	var found []*run
	for _, r := range f.runs {
		if slices.Contains(in.ExperimentIDs, r.experiment.id) && view(r.deleted) && conditions.match(r.field) {
			found = append(found, r)
		}
	}
	order = append(order,
		term{kind: "attribute", key: "start_time", sign: -1},
		term{kind: "attribute", key: "run_id", sign: 1})
	slices.SortStableFunc(found, func(a, b *run) int { return order.compare(a.field, b.field) })
	return found, nil
}

// field returns the value of r for a key in a filter or an order.
func (r *run) field(kind, key string) (any, bool) {
	switch kind {
	case "tag":
		v, ok := r.tags[key]
		return v, ok
	case "param":
		v, ok := r.params[key]
		return v, ok
	case "metric":
		if points := r.metrics[key]; points != nil {
			return latest(points).Value, true
		}
		return nil, false
	}

	switch key {
	case "run_id":
		return r.id, true
	case "run_name":
		return r.tags[nameTag], true
	case "user_id":
		return r.user, true
	case "status":
		return r.status, true
	case "artifact_uri":
		return r.root, true
	case "start_time":
		return r.start, true
	}

	return r.end, r.end != 0
}
