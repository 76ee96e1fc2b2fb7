package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/internal/plainjson"
)

// WithPush returns the bytes of one of our reports with other push parts, by node,
// and every other byte as it was: also what a later version put there.
func WithPush(data []byte, states map[string]PushState) ([]byte, error) {
	var edits []edit
	err := eachMember(data, 0, func(key string, value span) error {
		if key != "nodes" {
			return nil
		}
		return eachMember(value.of(data), value.from, func(node string, value span) error {
			state, wanted := states[node]
			if !wanted {
				return nil
			}
			e, err := pushEdit(data, value, state)
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

// span is a range of bytes; edit puts other ones there.
type span struct{ from, to int }

func (s span) of(data []byte) []byte { return data[s.from:s.to] }

type edit struct {
	span
	text []byte
}

// pushEdit replaces the push part of a node, or makes one at the node's begin.
func pushEdit(data []byte, node span, state PushState) (edit, error) {
	text, err := plainjson.Marshal(Push{MLflow: state})
	if err != nil {
		return edit{}, err
	}

	begin := node.from + 1
	e := edit{span{begin, begin}, append(append([]byte(`"push":`), text...), ',')}
	empty := true
	err = eachMember(node.of(data), node.from, func(key string, value span) error {
		empty = false
		if key == "push" {
			e = edit{value, text}
		}
		return nil
	})

	if empty && err == nil {
		e.text = e.text[:len(e.text)-1]
	}
	return e, err
}

// eachMember walks over the members of a JSON object that begins at an offset.
func eachMember(object []byte, offset int, visit func(key string, value span) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, errors.New("not an object"))
	}

	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		end := offset + int(dec.InputOffset())
		if err := visit(t.(string), span{end - len(value), end}); err != nil {
			return err
		}
	}

	_, err := dec.Token() // its end
	return err
}
