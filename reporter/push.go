package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/text"
)

// WithPush returns data, a perfagent report, with new states of the push to MLflow, by node. It keeps every byte
// outside the push parts. Inside them, it keeps the members that later versions have added.
func WithPush(data []byte, states map[string]PushState) ([]byte, error) {
	return withStates(data, "mlflow", states)
}

// WithStore is like WithPush, for states of the push to a store.
func WithStore(data []byte, states map[string]*StoreState) ([]byte, error) {
	return withStates(data, "store", states)
}

// withStates returns data, a report, with new states of the push to the given sink, by node.
func withStates[S any](data []byte, sink string, states map[string]S) ([]byte, error) {
	out, err := appendEdited(nil, data, func(out []byte, key string, value []byte) ([]byte, error) {
		if key != "nodes" {
			return append(out, value...), nil
		}
		return appendEdited(out, value, func(out []byte, node string, value []byte) ([]byte, error) {
			if state, ok := states[node]; ok {
				return appendNode(out, value, sink, state)
			}
			return append(out, value...), nil
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

// recordingIn encodes the run ID and the nodes of a report, without push parts and findings. It encodes any other JSON
// object as a whole. The members are sorted.
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

// appendNode appends a node with a state in its push part, or in a new push part at the node's start.
func appendNode(out, node []byte, sink string, state any) ([]byte, error) {
	begin, members, found := len(out)+1, 0, false
	out, err := appendEdited(out, node, func(out []byte, key string, value []byte) ([]byte, error) {
		members++
		if key != "push" {
			return append(out, value...), nil
		}
		found = true
		return appendPush(out, value, sink, state)
	})
	if err != nil || found {
		return out, err
	}

	part, err := appendPush([]byte(`"push":`), nil, sink, state)
	if members > 0 {
		part = append(part, ',')
	}
	return slices.Insert(out, begin, part...), err
}

// appendPush appends push, a push part, with a state in it. If push is not an object, it is replaced with a new part.
func appendPush(out, push []byte, sink string, state any) ([]byte, error) {
	members := map[string]any{"mlflow": PushState{State: PushOff}}
	var had map[string]jsontext.Value
	if json.Unmarshal(push, &had) == nil {
		for name, value := range had {
			members[name] = value
		}
	}
	members[sink] = state
	part, err := text.JSON(members)
	return append(out, part...), err
}

// appendEdited appends an edited copy of a JSON object. edit appends the new value of each member, or returns errOmit;
// every other byte is copied.
func appendEdited(
	out, object []byte, edit func(out []byte, key string, value []byte) ([]byte, error),
) ([]byte, error) {
	at, members := 0, 0 // the end of the input that was copied, and the number of copied members
	r := newReader(bytes.NewReader(object))
	err := r.object("not an object", func(quoted []byte) error {
		key := unquote(quoted)
		if _, err := r.value(); err != nil {
			return err
		}
		from, to := int(r.at), int(r.InputOffset())
		name := object[at:from]
		if at > 0 && members == 0 { // the first member was left out
			name = bytes.TrimLeft(name, ", \t\r\n")
		}
		edited, err := edit(append(out, name...), key, object[from:to])
		switch {
		case err == nil:
			out, members = edited, members+1
		case !errors.Is(err, errOmit):
			return err
		case at == 0:
			out = append(out, object[:bytes.IndexByte(object, '{')+1]...)
		}
		at = to
		return nil
	})
	return append(out, object[at:]...), err
}
