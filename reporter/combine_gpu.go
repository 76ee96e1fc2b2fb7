package reporter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// alignGPUs gives each GPU the same place in all pieces: metrics, keys and series have it in their names. Pieces that
// list the devices in the same order, as those of one host do, stay as they are.
func (c *combination) alignGPUs() {
	all := c.gpus()
	for _, p := range c.pieces {
		moved := false
		places := make([]int, len(p.GPUs))
		for i, g := range p.GPUs {
			places[i] = slices.IndexFunc(all, g.same)
			moved = moved || places[i] != i
		}
		if moved {
			p.moveGPUs(places)
		}
	}
}

// moveGPUs gives the device at place i the place places[i].
func (p *piece) moveGPUs(places []int) {
	n := *p.Node
	n.Metrics, n.Summaries, n.Envelope = moved(n.Metrics, places), moved(n.Summaries, places), moved(n.Envelope, places)
	n.Samples = Samples{Keys: slices.Clone(n.Samples.Keys), Columns: n.Samples.Columns}
	for i, key := range n.Samples.Keys {
		n.Samples.Keys[i] = cmp.Or(movedKey(key, places), key)
	}
	p.Node = &n
}

// moved returns a map with the keys of GPUs at other places.
func moved[M ~map[string]E, E any](from M, places []int) M {
	to := make(M, len(from))
	for key, e := range from {
		if key = movedKey(key, places); key != "" {
			to[key] = e
		}
	}
	return to
}

// movedKey returns the name of a metric or a column of the GPU at place i for place places[i]; "" if there is none.
// Others stay as they are.
func movedKey(key string, places []int) string {
	column, ok := collector.ColumnNamed(key)
	if m, isMetric := MetricNamed(key); isMetric {
		column, ok = m.Column()
	}
	i, _, gpu := column.GPU()
	switch {
	case !ok || !gpu || i >= len(places):
		return key
	case places[i] >= collector.MaxGPUs:
		return ""
	}
	return strings.Replace(key, fmt.Sprintf("gpu_%d_", i), fmt.Sprintf("gpu_%d_", places[i]), 1)
}
