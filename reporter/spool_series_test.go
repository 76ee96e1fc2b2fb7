package reporter

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seriesNode returns a node with nothing but series.
func seriesNode() *Node {
	band := Band{Min: Numbers{0, -1}, Mean: Numbers{0.5, math.NaN()}, Max: Numbers{1, 2}}
	return &Node{
		Sampling: &Sampling{Stride: 300},
		Samples:  Samples{Keys: []string{"time", ""}, Columns: [][]float64{{1, 2.25}, {math.NaN(), math.Inf(1)}}},
		Envelope: Envelope{"mem_percent": band, "job_rss_mb": {}},
		Ranks:    map[string]*Rank{"0": {Envelope: Envelope{"job_rss_mb": band}}, "12": {}},
	}
}

func TestParseSeries_GivesWhatWasAppended(t *testing.T) {
	for name, n := range map[string]*Node{"all": seriesNode(), "nothing": {}, "a stride of none": {Sampling: &Sampling{}}} {
		got, err := parseSeries(appendSeries(nil, n))
		if diff := cmp.Diff(n, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestParseSeries_OfACutFile(t *testing.T) {
	data := appendSeries(nil, seriesNode())
	for n := range data {
		if _, err := parseSeries(data[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

func FuzzParseSeries(f *testing.F) {
	f.Add(appendSeries(nil, seriesNode()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parseSeries(data)
		if err != nil {
			return
		}

		again, err := parseSeries(appendSeries(nil, n))
		if diff := cmp.Diff(n, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
