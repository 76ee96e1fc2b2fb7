package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/reporter"
)

// ReadHead reads the head of a journal: its first line, and the second line up to the description of the host.
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

// hostIn reads up to the host in the state of a sample or a snapshot. It returns nil if there is none.
func hostIn(in *jsontext.Decoder) *reporter.Host {
	type state struct {
		Host reporter.Host `json:"host"`
	}
	var line struct {
		Snapshot struct {
			State state `json:"state"`
		} `json:"snapshot"`
		State state `json:"state"`
	}
	var host *reporter.Host
	_ = jsonv2.UnmarshalDecode(in, &line, jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(
		func(in *jsontext.Decoder, h *reporter.Host) error {
			data, err := in.ReadValue()
			if err == nil && json.Unmarshal(data, h) == nil {
				host = h
			}
			return errEnough
		})))
	return host
}

// errEnough ends the reading of a line.
var errEnough = errors.New("the host is known")

// NewestTimes returns the newest timestamp in a journal, by the clock of its node, and the file's modification time, by
// the clock of the file system. ok is false if the last line is not a sample.
func NewestTimes(path string) (newest, written time.Time, ok bool) {
	f, err := durable.Open(path)
	if err != nil {
		return newest, written, false
	}
	defer f.Close()

	var head Head
	var line struct {
		Values reporter.Numbers `json:"sample"`
	}
	st, err := f.Stat()
	if err == nil {
		err = json.NewDecoder(io.LimitReader(f, maxLine)).Decode(&head)
	}
	if err == nil {
		err = json.Unmarshal(lastLine(f, st.Size()), &line)
	}
	at := slices.Index(head.Columns, collector.Timestamp.Key())
	if err != nil || at < 0 || at >= len(line.Values) || !(line.Values[at] > 0 && line.Values[at] < math.MaxInt32) {
		return newest, written, false
	}
	return time.UnixMicro(int64(line.Values[at] * 1e6)), st.ModTime(), true
}

// maxLine is the size of the longest line that NewestTimes reads.
const maxLine = 1 << 20

// lastLine returns the last line of a file of the given size; nil if it is incomplete or too long.
func lastLine(f *os.File, size int64) []byte {
	tail := make([]byte, min(size, maxLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil || !bytes.HasSuffix(tail, []byte{'\n'}) {
		return nil
	}
	tail = tail[:len(tail)-1]
	if from := bytes.LastIndexByte(tail, '\n'); from >= 0 {
		return tail[from+1:]
	}
	return nil
}
