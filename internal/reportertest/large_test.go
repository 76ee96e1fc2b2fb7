package reportertest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perfagent/perfagent/reporter"
)

func large(t *testing.T, nodes, buckets int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteLarge(&out, nodes, buckets); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWriteLarge_WritesAValidReport(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ nodes, buckets int }{{1, 2}, {3, 7}, {5, 20}} {
		data := large(t, c.nodes, c.buckets)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%d nodes: the report is not valid: %v", c.nodes, err)
		}
		if nodes := value.(map[string]any)["nodes"].(map[string]any); len(nodes) != c.nodes {
			t.Errorf("%d nodes, want %d", len(nodes), c.nodes)
		}
		if !bytes.Equal(data, large(t, c.nodes, c.buckets)) {
			t.Error("WriteLarge writes other bytes the second time")
		}
	}
}

// The file equals the merged reports of the nodes.
func TestWriteLarge_WritesTheMergedReports(t *testing.T) {
	const nodes, buckets = 9, 6
	var inputs []reporter.SourceReport
	for i := range nodes {
		inputs = append(inputs, reporter.SourceReport{Report: Large(i, nodes, buckets)})
	}
	merged, err := reporter.Merge(inputs)
	if err != nil {
		t.Fatal(err)
	}
	want, err := reporter.Encode(merged)
	if err != nil {
		t.Fatal(err)
	}
	if got := large(t, nodes, buckets); !bytes.Equal(got, want) {
		t.Errorf("WriteLarge writes\n%.2000s\nwant the merged reports\n%.2000s", got, want)
	}
}

func TestWriteLarge_HasOneBurst(t *testing.T) {
	const nodes, buckets = 4, 50
	for i := range nodes {
		n := Large(i, nodes, buckets).Nodes[string(rune('0'+i))]
		if n.Samples.Len() != buckets || n.Sampling.Stride != Stride {
			t.Errorf("node %d: %d buckets of %d samples, want %d of %d", i, n.Samples.Len(), n.Sampling.Stride, buckets,
				Stride)
		}
		for key, peak := range map[string]float64{"cpu_pct_per_cpu_avg": 100, "disk_io_write_mb_per_second": BurstRate} {
			band := n.Envelope[key]
			at := slices.Index(band.Max, peak)
			if want := BurstBucket(buckets); i == BurstNode(nodes) && (at != want || band.Mean[at] >= peak) || i != BurstNode(nodes) && at >= 0 {
				t.Errorf("node %d: %s peaks in bucket %d, want %d on node %d, above the mean, and none elsewhere", i,
					key, at, BurstBucket(buckets), BurstNode(nodes))
			}
		}
		if slices.Max(n.Samples.Column("cpu_pct_per_cpu_avg")) > 65 {
			t.Errorf("node %d: the samples have the burst, want it in the envelope only", i)
		}
	}
}

func TestWriteLarge_ReturnsErrors(t *testing.T) {
	data := large(t, 3, 2)
	for size := 0; size < len(data); size += 100 {
		if err := WriteLarge(&narrow{size}, 3, 2); !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("writer with room for %d bytes: error %v, want io.ErrShortBuffer", size, err)
		}
	}
}

// narrow accepts a number of bytes.
type narrow struct{ room int }

func (n *narrow) Write(p []byte) (int, error) {
	if n.room -= len(p); n.room < 0 {
		return 0, io.ErrShortBuffer
	}
	return len(p), nil
}
