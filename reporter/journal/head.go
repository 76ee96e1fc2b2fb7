package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/reporter"
)

// ReadHead reads the head of a journal: its first line and, up to the description of the host, the second one.
func ReadHead(file io.Reader) (*reporter.Head, error) {
	in := jsontext.NewDecoder(file, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	line, err := in.ReadValue()
	if err == io.EOF {
		return nil, errors.New("is empty")
	}

	var first Head
	if err == nil {
		err = json.Unmarshal(line, &first)
	}
	if err != nil {
		return nil, fmt.Errorf("line 1: the head is damaged: %w", err)
	}
	if err := reporter.CheckSchema(first.Journal, Schema); err != nil {
		return nil, err
	}

	return &reporter.Head{
		Run: first.Run, Node: strconv.Itoa(first.Node), Identity: first.Identity, Rank: first.Rank, Host: hostIn(in),
	}, nil
}

// hostIn returns the host in the state of the next line, that of a sample or a snapshot; nil if there is none.
func hostIn(in *jsontext.Decoder) *reporter.Host {
	type state struct {
		State struct {
			Host *reporter.Host `json:"host"`
		} `json:"state"`
	}
	var second struct {
		state
		Snapshot state `json:"snapshot"`
	}
	line, err := in.ReadValue()
	if err != nil || json.Unmarshal(line, &second) != nil {
		return nil
	}
	return cmp.Or(second.State.Host, second.Snapshot.State.Host)
}
