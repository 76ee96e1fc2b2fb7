package journal

import (
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

// hostIn reads on to the host in the state of a sample or a snapshot; nil if there is none.
func hostIn(in *jsontext.Decoder) *reporter.Host {
	if in.PeekKind() != '{' {
		return nil
	}
	_, err := in.ReadToken()
	for err == nil && in.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = in.ReadToken(); err != nil {
			return nil
		}

		switch name.String() {
		case "snapshot", "state":
			return hostIn(in)
		case "host":
			data, err := in.ReadValue()
			host := new(reporter.Host)
			if err != nil || json.Unmarshal(data, host) != nil {
				return nil
			}
			return host
		}
		err = in.SkipValue()
	}

	return nil
}
