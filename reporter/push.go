package reporter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// WithPush returns data, a perfagent report, with new states of the push to MLflow, given by node. It keeps every other
// byte, including members of later versions.
func WithPush(data []byte, states map[string]PushState) ([]byte, error) {
	return withSinks(data, states, sink{name: "mlflow"})
}

// WithStore returns data, a perfagent report, with new states of the push to a store, given by node. It leaves all
// other bytes unchanged.
func WithStore(data []byte, states map[string]*StoreState) ([]byte, error) {
	return withSinks(data, states, sink{name: "store", before: `"mlflow":{"state":"off"},`})
}

// A sink is a member of a push part, with text as its value. A new push part begins with before.
type sink struct {
	name   string
	text   []byte
	before string
}

// whole returns a new push part, with only s.
func (s sink) whole() []byte { return fmt.Appendf(nil, "{%s%q:%s}", s.before, s.name, s.text) }

// withSinks returns data, a report, with new states of s, given by node.
func withSinks[S any](data []byte, states map[string]S, s sink) ([]byte, error) {
	out, err := appendEdited(nil, data, func(out []byte, key string, value []byte) ([]byte, error) {
		if key != "nodes" {
			return append(out, value...), nil
		}
		return appendEdited(out, value, func(out []byte, node string, value []byte) (_ []byte, err error) {
			state, ok := states[node]
			if !ok {
				return append(out, value...), nil
			}
			if s.text, err = text.JSON(state); err != nil {
				return nil, err
			}
			return s.appendNode(out, value)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("find the push part: %w", err)
	}
	return out, nil
}

// SameRecording reports whether a and b are reports of the same recordings: of the same nodes of the same run, equal
// except for their pushes. It ignores the findings and the values of the whole run, because a merge changes them.
func SameRecording(a, b []byte) bool {
	x, errX := recordingIn(a)
	y, errY := recordingIn(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// recordingIn encodes the run ID and the nodes of a report, without push parts and findings, or all of any other JSON
// object. It sorts the members.
func recordingIn(data []byte) ([]byte, error) {
	var r map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		return nil, err
	}

	nodes, ok := r["nodes"].(map[string]any)
	if !ok {
		return json.Marshal(r)
	}
	for _, n := range nodes {
		if n, ok := n.(map[string]any); ok {
			delete(n, "push")
			delete(n, "findings")
		}
	}
	run, _ := r["run"].(map[string]any)
	return json.Marshal([]any{run["id"], nodes})
}

// appendNode appends a node with the sink in its push part, or in a new push part at the node's start.
func (s sink) appendNode(out, node []byte) ([]byte, error) {
	begin, part := len(out)+1, append([]byte(`"push":`), s.whole()...)
	out, err := appendEdited(out, node, func(out []byte, key string, value []byte) ([]byte, error) {
		if key == "push" {
			part = nil
			return s.appendPush(out, value), nil
		}
		if n := len(part); n > 0 && part[n-1] != ',' {
			part = append(part, ',')
		}
		return append(out, value...), nil
	})
	if err != nil || part == nil {
		return out, err
	}
	return slices.Insert(out, begin, part...), nil
}

// appendPush appends push, a push part, with the sink in it: in place of the old one, or after the other members. If
// push is not an object, it is replaced.
func (s sink) appendPush(out, push []byte) []byte {
	found, end := false, 0 // end of the last member
	edited, err := appendEdited(nil, push, func(out []byte, key string, value []byte) ([]byte, error) {
		if key == s.name {
			found, value = true, s.text
		}
		out = append(out, value...)
		end = len(out)
		return out, nil
	})
	switch {
	case err != nil || end == 0:
		return append(out, s.whole()...)
	case !found:
		edited = slices.Insert(edited, end, fmt.Appendf(nil, ",%q:%s", s.name, s.text)...)
	}
	return append(out, edited...)
}

// appendEdited appends a JSON object. edit appends the new value of each member; every other byte is
// copied.
func appendEdited(
	out, object []byte, edit func(out []byte, key string, value []byte) ([]byte, error),
) ([]byte, error) {
	at := 0 // end of the copied input
	r := newReader(bytes.NewReader(object))
	err := r.object("not an object", func(quoted []byte) error {
		key := unquote(quoted)
		if _, err := r.value(); err != nil {
			return err
		}
		from, to := int(r.at), int(r.InputOffset())
		var err error
		out, err = edit(append(out, object[at:from]...), key, object[from:to])
		at = to
		return err
	})
	return append(out, object[at:]...), err
}
