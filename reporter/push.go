package reporter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// WithPush returns the bytes of one of our reports with other states of the push to MLflow, by node, and every other
// byte as it was: also what a later version put there.
func WithPush(data []byte, states map[string]PushState) ([]byte, error) {
	return withSinks(data, states, sink{name: "mlflow"})
}

// WithStore returns the bytes of one of our reports with other states of the put into a store, by node, and every other
// byte as it was.
func WithStore(data []byte, states map[string]*StoreState) ([]byte, error) {
	return withSinks(data, states, sink{name: "store", before: `"mlflow":{"state":"off"},`})
}

// A sink is a member of a push part with its value. before is what stands before it where there is no push part yet.
type sink struct {
	name   string
	text   []byte
	before string
}

// whole returns a push part with this sink alone.
func (s sink) whole() []byte { return fmt.Appendf(nil, "{%s%q:%s}", s.before, s.name, s.text) }

// withSinks returns the bytes of a report with other states of a sink.
func withSinks[S any](data []byte, states map[string]S, s sink) ([]byte, error) {
	var edits []edit
	err := eachMember(data, 0, func(key string, value span) error {
		if key != "nodes" {
			return nil
		}
		return eachMember(value.of(data), value.from, func(node string, value span) error {
			state, ok := states[node]
			if !ok {
				return nil
			}
			var err error
			if s.text, err = text.JSON(state); err != nil {
				return err
			}
			e, err := s.editNode(data, value)
			edits = append(edits, e)
			return err
		})
	})

	if err != nil {
		return nil, fmt.Errorf("find the push part: %w", err)
	}

	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, data[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, data[at:]...), nil
}

// SameRecording reports whether two files are reports of the same recordings: of the same nodes of the same run, equal
// but for where they went. What is said of the whole run, and the findings, change when nodes are merged.
func SameRecording(a, b []byte) bool {
	x, errX := recordingIn(a)
	y, errY := recordingIn(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// recordingIn returns the run ID and the nodes of a report, without push parts and findings, or all of what is no
// report of ours. Its members are sorted.
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

// span is a range of bytes; edit puts other ones there.
type span struct{ from, to int }

func (s span) of(data []byte) []byte { return data[s.from:s.to] }

type edit struct {
	span
	text []byte
}

// editNode replaces the sink in the push part of a node, or makes a push part at the node's begin.
func (s sink) editNode(data []byte, node span) (edit, error) {
	begin := node.from + 1
	e := edit{span{begin, begin}, append(append([]byte(`"push":`), s.whole()...), ',')}
	empty := true
	err := eachMember(node.of(data), node.from, func(key string, value span) error {
		empty = false
		if key == "push" {
			e = s.editPush(data, value)
		}
		return nil
	})

	if empty && err == nil {
		e.text = e.text[:len(e.text)-1]
	}
	return e, err
}

// editPush replaces the sink in a push part, or adds it behind the others. What is no object is replaced.
func (s sink) editPush(data []byte, push span) edit {
	var e edit
	err := eachMember(push.of(data), push.from, func(key string, value span) error {
		switch {
		case key == s.name:
			e = edit{value, s.text}
		case e.text == nil || e.from == e.to:
			e = edit{span{value.to, value.to}, fmt.Appendf(nil, ",%q:%s", s.name, s.text)}
		}
		return nil
	})
	if err != nil || e.text == nil {
		return edit{push, s.whole()}
	}

	return e
}

// eachMember walks over the members of a JSON object that begins at an offset.
func eachMember(object []byte, offset int, visit func(key string, value span) error) error {
	r := newReader(bytes.NewReader(object))
	return r.object("not an object", func(quoted []byte) error {
		key := unquote(quoted)
		if _, err := r.value(); err != nil {
			return err
		}
		return visit(key, span{offset + int(r.at), offset + int(r.InputOffset())})
	})
}
